package dev.snugly.benchmark.measure;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * A figure of a sample.
 *
 * @param name what GLIDE's results call it
 * @param of the figure
 */
public record Metric(String name, ToDoubleFunction<Sample> of) {
  /** Operations a second. */
  public static final Metric TPS = new Metric("tps", Sample::tps);

  /** A figure of how long an operation took. */
  public enum Statistic {
    /** The mean. */
    AVERAGE("average_latency", Latency::average),
    /** The median. */
    P50("p50_latency", Latency::p50),
    /** The 90th percentile. */
    P90("p90_latency", Latency::p90),
    /** The 99th percentile. */
    P99("p99_latency", Latency::p99),
    /** The standard deviation. */
    DEVIATION("std_dev", Latency::deviation);

    private final String field;

    @SuppressWarnings("ImmutableEnumChecker") // a method of Latency
    private final ToDoubleFunction<Latency> of;

    Statistic(String field, ToDoubleFunction<Latency> of) {
      this.field = field;
      this.of = of;
    }
  }

  /** Returns the figure of an operation. */
  public static Metric of(Operation operation, Statistic statistic) {
    return new Metric(
        operation.field() + "_" + statistic.field,
        sample -> statistic.of.applyAsDouble(sample.latencies().get(operation)));
  }

  /** Returns all figures that there are. */
  public static List<Metric> all() {
    List<Metric> metrics = new ArrayList<>(List.of(TPS));
    for (Operation operation : Operation.values()) {
      for (Statistic statistic : Statistic.values()) {
        metrics.add(of(operation, statistic));
      }
    }
    return metrics;
  }

  @Override
  public String toString() {
    return name;
  }
}
