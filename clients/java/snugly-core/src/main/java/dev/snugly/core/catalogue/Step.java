package dev.snugly.core.catalogue;

import java.time.Duration;

/**
 * The next step of a {@link Task}.
 *
 * @param <T> what comes of the task
 */
sealed interface Step<T> {
  /**
   * A request, to be answered.
   *
   * @param request something to do
   * @param then the rest of the task, which takes the outcome of that
   */
  record Ask<A, T>(Request<A> request, Continuation<A, T> then) implements Step<T> {}

  /**
   * A pause.
   *
   * @param length its length
   * @param then the rest of the task
   */
  record Pause<T>(Duration length, Task<T> then) implements Step<T> {}

  /**
   * The end.
   *
   * @param outcome what comes of the task
   */
  record Done<T>(T outcome) implements Step<T> {}

  /** The rest of a task. */
  @FunctionalInterface
  interface Continuation<A, T> {
    /** Takes an answer, and goes on to the next step. */
    Step<T> resume(A answer, Moment now);
  }
}
