package dev.snugly.benchmark.measure;

import java.util.List;

/**
 * Spread of the results of several rounds.
 *
 * @param median the one in the middle, or between the two in the middle
 * @param low the least
 * @param high the most
 */
public record Spread(double median, double low, double high) {
  /** Returns that of some numbers. */
  public static Spread of(List<Double> found) {
    List<Double> sorted = found.stream().sorted().toList();
    int count = sorted.size();
    double median = (sorted.get((count - 1) / 2) + sorted.get(count / 2)) / 2;
    return new Spread(median, sorted.get(0), sorted.get(count - 1));
  }
}
