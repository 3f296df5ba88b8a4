package dev.snugly.benchmark.report;

import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.data.Corpus;
import dev.snugly.benchmark.measure.Metric;
import dev.snugly.benchmark.measure.Metric.Statistic;
import dev.snugly.benchmark.measure.Operation;
import dev.snugly.benchmark.measure.Results;
import dev.snugly.benchmark.measure.Workload;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoublePredicate;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * A bound on one figure of one client beside another client.
 *
 * @param says the bound
 * @param subject whose figure it is
 * @param metric the figure
 * @param base whose figure it is divided by
 * @param holds whether a ratio is within the bound
 * @param applies to which workloads
 */
record Aim(
    String says,
    ClientKind subject,
    Metric metric,
    ClientKind base,
    DoublePredicate holds,
    Predicate<Workload> applies) {
  /** The rival, whose compression everybody's is compared with. */
  static final ClientKind RIVAL = ClientKind.GLIDE_COMPRESSED;

  private static final double FASTER_THAN_RIVAL = 1.3;
  private static final int SMALL = 100;
  private static final double KEPT_WHEN_SMALL = 0.97;
  private static final int LARGE = 4000;
  private static final double KEPT_WHEN_LARGE = 0.9;

  /**
   * Outcome of an aim.
   *
   * @param aim which one
   * @param workload where
   * @param ratio the median of the rounds
   */
  record Verdict(Aim aim, Workload workload, double ratio) {
    boolean met() {
      return aim.holds.test(ratio);
    }
  }

  /** All aims that can be judged in some results, in each workload that they are for. */
  static List<Verdict> judge(Results results) {
    List<Verdict> verdicts = new ArrayList<>();
    for (Workload workload : results.workloads()) {
      for (Aim aim : all()) {
        if (aim.applies.test(workload)
            && results.has(workload, aim.subject)
            && results.has(workload, aim.base)) {
          double ratio = results.ratio(workload, aim.subject, aim.metric, aim.base).median();
          verdicts.add(new Verdict(aim, workload, ratio));
        }
      }
    }
    return verdicts;
  }

  private static List<Aim> all() {
    return Stream.of(ClientKind.values())
        .filter(client -> client.isCompressed() && client != RIVAL)
        .flatMap(Aim::of)
        .toList();
  }

  private static Stream<Aim> of(ClientKind ours) {
    ClientKind own = ours.uncompressed();
    return Stream.of(
        atLeast(FASTER_THAN_RIVAL, ours, RIVAL, Aim::isDirect),
        notSlower(ours, Operation.SET),
        notSlower(ours, Operation.GET_EXISTING),
        atLeast(KEPT_WHEN_SMALL, ours, own, workload -> workload.dataSize() == SMALL),
        atLeast(
            KEPT_WHEN_LARGE, ours, own, workload -> isLargeJson(workload) && isDirect(workload)),
        new Aim(
            "> 1",
            ours,
            Metric.TPS,
            own,
            ratio -> ratio > 1,
            workload -> isLargeJson(workload) && !isDirect(workload)));
  }

  /** Whether the clients are what bounds: a link that is full carries the same bytes of all. */
  private static boolean isDirect(Workload workload) {
    return !workload.link().isLimited();
  }

  /** Whether the values are records, generated or real: one character again flatters everybody. */
  private static boolean isLargeJson(Workload workload) {
    return workload.dataSize() == LARGE && !workload.data().equals(Corpus.PATTERN);
  }

  private static Aim atLeast(
      double bound, ClientKind ours, ClientKind base, Predicate<Workload> applies) {
    return new Aim(">= " + bound, ours, Metric.TPS, base, ratio -> ratio >= bound, applies);
  }

  private static Aim notSlower(ClientKind ours, Operation operation) {
    Metric p99 = Metric.of(operation, Statistic.P99);
    return new Aim("<= 1", ours, p99, RIVAL, ratio -> ratio <= 1, Aim::isDirect);
  }
}
