package dev.snugly.benchmark.report;

import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.measure.Metric;
import dev.snugly.benchmark.measure.Metric.Statistic;
import dev.snugly.benchmark.measure.Operation;
import dev.snugly.benchmark.measure.Results;
import dev.snugly.benchmark.measure.Workload;
import dev.snugly.benchmark.report.Aim.Verdict;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Tells results to people. */
public final class Report {
  private final Results results;

  /** A report of these results. */
  public Report(Results results) {
    this.results = results;
  }

  /** Returns a table for each workload, in Markdown. */
  public String tables() {
    return results.workloads().stream().map(this::section).collect(Collectors.joining("\n"));
  }

  /** As String.formatted, the same in every country. */
  private static String written(String format, Object... arguments) {
    return String.format(Locale.ROOT, format, arguments);
  }

  private String section(Workload workload) {
    Table table =
        new Table(
            2,
            "client",
            "operation",
            "TPS",
            "stored B",
            "average ms",
            "p50 ms",
            "p90 ms",
            "p99 ms",
            "deviation ms");
    for (ClientKind client : results.clients(workload)) {
      for (Operation operation : Operation.values()) {
        table.add(row(workload, client, operation));
      }
    }
    String title =
        written(
            "## %s, %,d B; tasks: %,d, clients: %,d, link: %s, backend: %s",
            workload.data(),
            workload.dataSize(),
            workload.tasks(),
            workload.clientCount(),
            workload.link(),
            workload.backend());
    return title + "\n\n" + table;
  }

  private List<String> row(Workload workload, ClientKind client, Operation operation) {
    boolean first = operation == Operation.SET;
    List<String> cells = new ArrayList<>();
    cells.add(first ? client.toString() : "");
    cells.add(operation.toString());
    cells.add(first ? cell(workload, client, Metric.TPS, "%,.0f") : "");
    cells.add(first ? written("%,.0f", results.stored(workload, client)) : "");
    for (Statistic statistic : Statistic.values()) {
      cells.add(cell(workload, client, Metric.of(operation, statistic), "%.3f"));
    }
    return cells;
  }

  /** A figure, and by how much it differs from that of the same client without compression. */
  private String cell(Workload workload, ClientKind client, Metric metric, String format) {
    String figure = written(format, results.spread(workload, client, metric).median());
    ClientKind base = client.uncompressed();
    if (base == client || !results.has(workload, base)) {
      return figure;
    }
    double ratio = results.ratio(workload, client, metric, base).median();
    return written("%s (%+.1f %%)", figure, 100 * (ratio - 1));
  }

  /** Returns a table of what was aimed at, in Markdown. */
  public String aims() {
    List<Verdict> verdicts = Aim.judge(results);
    if (verdicts.isEmpty()) {
      return written(
          "No aim could be judged: that takes a client of ours, and %s or itself uncompressed.\n",
          Aim.RIVAL);
    }
    Table table =
        new Table(
            6, "data", "link", "tasks", "size", "figure", "beside", "found", "aim", "verdict");
    for (Verdict verdict : verdicts) {
      table.add(row(verdict));
    }
    long met = verdicts.stream().filter(Verdict::met).count();
    return written("## Aims\n\n%s\n%d of %d aims met.\n", table, met, verdicts.size());
  }

  private static List<String> row(Verdict verdict) {
    Workload workload = verdict.workload();
    Aim aim = verdict.aim();
    return List.of(
        workload.data(),
        workload.link().toString(),
        written("%,d on %,d", workload.tasks(), workload.clientCount()),
        written("%,d B", workload.dataSize()),
        aim.metric().toString(),
        written("%s / %s", aim.subject(), aim.base()),
        written("%.2f", verdict.ratio()),
        aim.says(),
        verdict.met() ? "met" : "MISSED");
  }
}
