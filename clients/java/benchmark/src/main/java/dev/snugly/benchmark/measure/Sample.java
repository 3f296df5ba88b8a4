package dev.snugly.benchmark.measure;

import java.util.Map;

/**
 * Result of one measurement.
 *
 * @param seconds how long it took
 * @param latencies of each operation
 */
public record Sample(double seconds, Map<Operation, Latency> latencies) {
  /** Returns how many operations were answered in a second. */
  public double tps() {
    return latencies.values().stream().mapToLong(Latency::count).sum() / seconds;
  }
}
