package dev.snugly.core.catalogue;

import java.time.Duration;

/**
 * A moment, by both clocks of a client.
 *
 * @param monotonic by a clock that never goes back, since any moment
 * @param wall by the clock on the wall, since 1970
 */
record Moment(Duration monotonic, Duration wall) {}
