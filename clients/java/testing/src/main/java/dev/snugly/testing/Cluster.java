package dev.snugly.testing;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A real cluster of valkey-servers without replicas. */
public final class Cluster implements AutoCloseable {
  private static final int SLOTS = 16384;

  private final List<Server> nodes = new ArrayList<>();

  private Cluster() {}

  /**
   * Starts a cluster, which is ready when this returns.
   *
   * @param count how many nodes share the slots
   */
  public static Cluster start(int count) {
    Cluster cluster = new Cluster();
    try {
      cluster.form(count);
    } catch (RuntimeException | Error error) {
      cluster.close();
      throw error;
    }
    return cluster;
  }

  private void form(int count) {
    List<Integer> buses = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      int bus = Server.freePort();
      buses.add(bus);
      nodes.add(Server.valkey("--cluster-enabled", "yes", "--cluster-port", Integer.toString(bus)));
    }
    for (int number = 0; number < count; number++) {
      try (Connection connection = nodes.get(number).connect()) {
        connection.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1);
        connection.command(
            "CLUSTER", "ADDSLOTSRANGE", SLOTS * number / count, SLOTS * (number + 1) / count - 1);
        for (int other = 0; other < number; other++) {
          connection.command(
              "CLUSTER", "MEET", "127.0.0.1", nodes.get(other).port(), buses.get(other));
        }
      }
    }
    for (Server node : nodes) {
      Waiting.until("every node knows every slot", () -> knowsEverySlot(node, count));
    }
  }

  private static boolean knowsEverySlot(Server node, int count) {
    try (Connection connection = node.connect()) {
      String info = new String(connection.bytes("CLUSTER", "INFO"), StandardCharsets.UTF_8);
      List<?> rows = (List<?>) connection.command("CLUSTER", "SLOTS");
      return info.contains("cluster_state:ok") && rows.size() == count;
    }
  }

  /** Returns the nodes, in the order of their slots. */
  public List<Server> nodes() {
    return List.copyOf(nodes);
  }

  /** Removes everything. */
  public void flush() {
    for (Server node : nodes) {
      try (Connection connection = node.connect()) {
        connection.command("FLUSHALL");
      }
    }
  }

  @Override
  public void close() {
    nodes.forEach(Server::close);
  }
}
