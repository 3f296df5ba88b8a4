package dev.snugly.benchmark.report;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.measure.Metric;
import dev.snugly.benchmark.measure.Results;
import dev.snugly.benchmark.measure.Sample;
import dev.snugly.benchmark.measure.Spread;
import dev.snugly.benchmark.measure.Workload;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** Writes results for programs. */
public final class ResultFiles {
  /** Beginning of the CSV files of all benchmarks. */
  static final String CSV_HEADER =
      "workload,subject,metric,rounds,median,min,max,base,ratio,ratio_min,ratio_max,samples";

  private static final Gson GSON = new GsonBuilder().setPrettyPrinting().create();

  private ResultFiles() {}

  /**
   * Makes the folder that the files will be in.
   *
   * @param json the path of the JSON
   * @throws IOException if there can be none
   */
  public static void makeFolder(Path json) throws IOException {
    Files.createDirectories(json.toAbsolutePath().getParent());
  }

  /**
   * Writes the samples of every round as JSON, with the names that GLIDE's results have, and as
   * CSV, as all benchmarks here do.
   *
   * @param json the path of the JSON; the CSV has the same with another ending
   * @return the two
   * @throws IOException if they cannot be written
   */
  public static List<Path> write(Path json, Results results, boolean cluster) throws IOException {
    String name = json.getFileName().toString();
    Path csv = json.resolveSibling(name.replaceFirst("\\.json$", "") + ".csv");
    makeFolder(json);
    Files.writeString(json, GSON.toJson(records(results, cluster)) + "\n");
    Files.writeString(csv, csv(results));
    return List.of(json, csv);
  }

  /** A record for each round of each client in each workload. */
  static List<Map<String, Object>> records(Results results, boolean cluster) {
    List<Map<String, Object>> records = new ArrayList<>();
    for (Workload workload : results.workloads()) {
      for (ClientKind client : results.clients(workload)) {
        List<Sample> samples = results.samples(workload, client);
        for (int round = 0; round < samples.size(); round++) {
          Map<String, Object> fields = new LinkedHashMap<>();
          fields.put("client", client.toString());
          fields.put("client_count", workload.clientCount());
          fields.put("data", workload.data());
          fields.put("data_size", workload.dataSize());
          fields.put("stored_bytes", results.stored(workload, client));
          fields.put("is_cluster", cluster);
          fields.put("link", workload.link().toString());
          fields.put("backend", workload.backend().toString());
          fields.put("num_of_tasks", workload.tasks());
          fields.put("round", round + 1);
          for (Metric metric : Metric.all()) {
            fields.put(metric.name(), metric.of().applyAsDouble(samples.get(round)));
          }
          records.add(fields);
        }
      }
    }
    return records;
  }

  /** A line for each figure of each client in each workload. */
  static String csv(Results results) {
    List<String> lines = new ArrayList<>(List.of(CSV_HEADER));
    for (Workload workload : results.workloads()) {
      for (ClientKind client : results.clients(workload)) {
        for (Metric metric : Metric.all()) {
          lines.add(line(results, workload, client, metric));
        }
      }
    }
    return String.join("\n", lines) + "\n";
  }

  private static String line(Results results, Workload workload, ClientKind client, Metric metric) {
    List<Double> values = results.values(workload, client, metric);
    ClientKind base = client.uncompressed();
    List<String> cells = new ArrayList<>();
    cells.addAll(List.of(workload.toString(), client.toString(), metric.name()));
    cells.add(Integer.toString(values.size()));
    cells.addAll(cells(Spread.of(values)));
    if (results.has(workload, base)) {
      cells.add(base.toString());
      cells.addAll(cells(results.ratio(workload, client, metric, base)));
    } else {
      cells.addAll(List.of("", "", "", ""));
    }
    cells.add(values.stream().map(String::valueOf).collect(Collectors.joining(" ")));
    return String.join(",", cells);
  }

  private static List<String> cells(Spread spread) {
    return List.of(number(spread.median()), number(spread.low()), number(spread.high()));
  }

  private static String number(double value) {
    return Double.isFinite(value) ? String.format(Locale.ROOT, "%.6g", value) : "";
  }
}
