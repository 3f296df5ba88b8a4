package dev.snugly.core.catalogue;

/**
 * A procedure that does no I/O and knows no clock: it says what is to be done next, and goes on
 * when whoever drives it has the answer.
 *
 * @param <T> what comes of it
 */
@FunctionalInterface
interface Task<T> {
  /** Goes on to the first step. */
  Step<T> start(Moment now);
}
