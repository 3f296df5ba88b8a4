package dev.snugly.benchmark.measure;

import org.HdrHistogram.AbstractHistogram;

/**
 * Latency of one operation, in milliseconds; all 0 if it was never asked for.
 *
 * @param count how often it was asked for
 * @param average of all times
 * @param p50 what half of them did not exceed
 * @param p90 what 90 of a hundred did not exceed
 * @param p99 what 99 of a hundred did not exceed
 * @param deviation standard deviation
 */
public record Latency(
    long count, double average, double p50, double p90, double p99, double deviation) {
  private static final double NANOSECONDS = 1e6;

  /** Returns what a histogram of nanoseconds says. */
  static Latency of(AbstractHistogram times) {
    if (times.getTotalCount() == 0) {
      return new Latency(0, 0, 0, 0, 0, 0);
    }
    return new Latency(
        times.getTotalCount(),
        times.getMean() / NANOSECONDS,
        times.getValueAtPercentile(50) / NANOSECONDS,
        times.getValueAtPercentile(90) / NANOSECONDS,
        times.getValueAtPercentile(99) / NANOSECONDS,
        times.getStdDeviation() / NANOSECONDS);
  }
}
