package dev.snugly.benchmark.measure;

import dev.snugly.benchmark.client.ClientKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** The samples of every client in every workload, one for each round. */
public final class Results {
  private final Map<Workload, Map<ClientKind, List<Sample>>> samples = new LinkedHashMap<>();
  private final Map<ClientKind, Map<Integer, Double>> stored = new LinkedHashMap<>();

  /** Adds what a round has found. */
  public void add(Workload workload, ClientKind client, Sample sample) {
    samples
        .computeIfAbsent(workload, each -> new LinkedHashMap<>())
        .computeIfAbsent(client, each -> new ArrayList<>())
        .add(sample);
  }

  /** Adds how many bytes the server has of a value of so many, on average. */
  public void addStored(ClientKind client, int dataSize, double bytes) {
    stored.computeIfAbsent(client, each -> new LinkedHashMap<>()).put(dataSize, bytes);
  }

  /** Returns all workloads, in the order of measuring. */
  public List<Workload> workloads() {
    return List.copyOf(samples.keySet());
  }

  /** Returns who was measured in a workload, in order. */
  public List<ClientKind> clients(Workload workload) {
    return samples.get(workload).keySet().stream().sorted().toList();
  }

  /** Returns the samples of all rounds. */
  public List<Sample> samples(Workload workload, ClientKind client) {
    return samples.get(workload).get(client);
  }

  /** Returns how many bytes the server has of a value, on average. */
  public double stored(Workload workload, ClientKind client) {
    return stored.get(client).get(workload.dataSize());
  }

  /** Whether a client was measured in a workload. */
  public boolean has(Workload workload, ClientKind client) {
    return samples.get(workload).containsKey(client);
  }

  /** Returns what the rounds have found. */
  public Spread spread(Workload workload, ClientKind client, Metric metric) {
    return Spread.of(values(workload, client, metric));
  }

  /**
   * Returns one client over another, of the ratios within each round: what disturbs a round
   * disturbs both.
   */
  public Spread ratio(Workload workload, ClientKind client, Metric metric, ClientKind base) {
    List<Double> mine = values(workload, client, metric);
    List<Double> others = values(workload, base, metric);
    return Spread.of(
        IntStream.range(0, mine.size())
            .mapToObj(round -> mine.get(round) / others.get(round))
            .toList());
  }

  /** Returns the figure of each round. */
  public List<Double> values(Workload workload, ClientKind client, Metric metric) {
    return samples(workload, client).stream().map(metric.of()::applyAsDouble).toList();
  }
}
