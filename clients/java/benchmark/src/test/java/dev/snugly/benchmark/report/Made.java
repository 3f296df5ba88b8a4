package dev.snugly.benchmark.report;

import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.link.Rate;
import dev.snugly.benchmark.measure.Latency;
import dev.snugly.benchmark.measure.Operation;
import dev.snugly.benchmark.measure.Results;
import dev.snugly.benchmark.measure.Sample;
import dev.snugly.benchmark.measure.Workload;
import java.util.EnumMap;
import java.util.Map;

/** Results that nobody has measured. */
final class Made {
  private static final long OPERATIONS = 900;

  final Results results = new Results();

  /** A round with so many operations a second, each operation with the same latency. */
  Made add(Workload workload, ClientKind client, double tps, double milliseconds) {
    Map<Operation, Latency> latencies = new EnumMap<>(Operation.class);
    for (Operation operation : Operation.values()) {
      latencies.put(
          operation,
          new Latency(
              OPERATIONS / 3,
              milliseconds,
              milliseconds,
              2 * milliseconds,
              4 * milliseconds,
              milliseconds / 2));
    }
    results.add(workload, client, new Sample(OPERATIONS / tps, latencies));
    results.addStored(
        client, workload.dataSize(), client.isCompressed() ? 40 : workload.dataSize());
    return this;
  }

  static Workload workload(String data, int size, String link) {
    return new Workload(data, size, 100, 1, Rate.parse(link), Backend.ZSTD);
  }
}
