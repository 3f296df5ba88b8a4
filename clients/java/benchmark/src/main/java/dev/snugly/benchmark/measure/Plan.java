package dev.snugly.benchmark.measure;

import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.client.Endpoint;
import dev.snugly.benchmark.link.Rate;
import java.util.ArrayList;
import java.util.List;

/**
 * Plan of the measurements.
 *
 * @param clients who
 * @param data kinds of values, or a file
 * @param dataSizes bytes of each value
 * @param tasks how many threads ask at once
 * @param clientCounts how many client objects they use
 * @param links what is between the clients and the server
 * @param backend what those who compress do it with
 * @param endpoint the server
 * @param extent how much
 */
public record Plan(
    List<ClientKind> clients,
    String data,
    List<Integer> dataSizes,
    List<Integer> tasks,
    List<Integer> clientCounts,
    List<Rate> links,
    Backend backend,
    Endpoint endpoint,
    Extent extent) {
  /** The workloads with values of one size. */
  List<Workload> workloads(String name, int dataSize) {
    List<Workload> found = new ArrayList<>();
    for (Rate link : links) {
      for (int clientCount : clientCounts) {
        for (int each : tasks) {
          found.add(new Workload(name, dataSize, each, clientCount, link, backend));
        }
      }
    }
    return found;
  }

  /** The clients in the order of a round: another one is first each time. */
  List<ClientKind> turn(int round) {
    List<ClientKind> order = new ArrayList<>();
    for (int each = 0; each < clients.size(); each++) {
      order.add(clients.get((round + each) % clients.size()));
    }
    return order;
  }
}
