package dev.snugly.benchmark.measure;

import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.link.Rate;

/**
 * Key of the results.
 *
 * @param data the name of the values
 * @param dataSize bytes of each value
 * @param tasks threads that have one request under way each
 * @param clientCount client objects that the tasks use in turn
 * @param link what is between the clients and the server
 * @param backend what those who compress do it with
 */
public record Workload(
    String data, int dataSize, int tasks, int clientCount, Rate link, Backend backend) {
  /** Returns it as the workloads of the other benchmarks are written. */
  @Override
  public String toString() {
    return "data=%s size=%d tasks=%d clients=%d link=%s backend=%s"
        .formatted(data, dataSize, tasks, clientCount, link, backend);
  }
}
