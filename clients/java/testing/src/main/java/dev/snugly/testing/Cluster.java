package dev.snugly.testing;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A real cluster of valkey-servers, without replicas but for one that a test adds. */
public final class Cluster implements AutoCloseable {
  private static final int SLOTS = 16384;

  private final List<Server> nodes = new ArrayList<>();
  private final List<Server> replicas = new ArrayList<>();

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
    for (int number = 0; number < count; number++) {
      nodes.add(node());
    }
    for (int number = 0; number < count; number++) {
      try (Connection connection = nodes.get(number).connect()) {
        connection.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1);
        connection.command(
            "CLUSTER", "ADDSLOTSRANGE", SLOTS * number / count, SLOTS * (number + 1) / count - 1);
        for (int other = 0; other < number; other++) {
          meet(connection, other);
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

  private static Server node() {
    return Server.inMemory(
        Needed.program("SNUGLY_VALKEY_SERVER"),
        () ->
            List.of(
                "--cluster-enabled", "yes", "--cluster-port", Integer.toString(Server.freePort())));
  }

  private void meet(Connection connection, int node) {
    Server met = nodes.get(node);
    try (Connection asking = met.connect()) {
      List<?> bus = (List<?>) asking.command("CONFIG", "GET", "cluster-port");
      connection.command("CLUSTER", "MEET", "127.0.0.1", met.port(), bus.get(1));
    }
  }

  /** Adds a replica of the first node; every node knows it when this returns. */
  public Server addReplica() {
    Server replica = node();
    replicas.add(replica);
    String primary = id(0);
    try (Connection connection = replica.connect()) {
      meet(connection, 0);
      Waiting.until(
          "it knows the primary", () -> connection.text("CLUSTER", "NODES").contains(primary));
      connection.command("CLUSTER", "REPLICATE", primary);
      Waiting.until(
          "it has the primary's values",
          () -> connection.text("INFO", "replication").contains("master_link_status:up"));
    }
    for (Server node : nodes) {
      try (Connection connection = node.connect()) {
        Waiting.until("every node names it to clients", () -> namesAReplica(connection));
      }
    }
    return replica;
  }

  private static boolean namesAReplica(Connection connection) {
    List<?> rows = (List<?>) connection.command("CLUSTER", "SLOTS");
    return rows.stream().anyMatch(row -> ((List<?>) row).size() > 3); // Start, end, primary.
  }

  /** Returns the slot of a key. */
  public int slot(String key) {
    try (Connection connection = nodes.get(0).connect()) {
      return ((Long) connection.command("CLUSTER", "KEYSLOT", key)).intValue();
    }
  }

  /** Returns the number of the node that has a slot, before any was moved. */
  public int owner(int slot) {
    return ((slot + 1) * nodes.size() - 1) / SLOTS;
  }

  /**
   * Gives an empty slot to another node, and returns when all know it: its owner of before answers
   * MOVED.
   *
   * @param slot which one
   * @param to the number of the node
   */
  public void move(int slot, int to) {
    String id = id(to);
    // An importer of a slot gets an epoch with it that the others believe, and so goes first: the
    // owner of before may just have told them that the slot is its own.
    setSlot(to, slot, "IMPORTING", id(owner(slot)));
    setSlot(to, slot, "NODE", id);
    for (int at = 0; at < nodes.size(); at++) {
      setSlot(at, slot, "NODE", id);
    }
    Waiting.until(
        "every node knows the new owner's epoch",
        () -> nodes.stream().map(node -> epoch(node, id)).distinct().count() == 1);
  }

  /** The epoch of a node, as another one or itself knows it. */
  private static String epoch(Server knowing, String id) {
    try (Connection connection = knowing.connect()) {
      return connection
          .text("CLUSTER", "NODES")
          .lines()
          .map(line -> line.split(" "))
          .filter(row -> row[0].equals(id))
          .map(row -> row[6])
          .findFirst()
          .orElseThrow();
    }
  }

  /**
   * Begins to move a slot and does not end: for keys that are not there its owner answers ASK.
   *
   * @param slot which one
   * @param from the number of its owner
   * @param to the number of the other node
   */
  public void beginToMove(int slot, int from, int to) {
    setSlot(to, slot, "IMPORTING", id(from));
    setSlot(from, slot, "MIGRATING", id(to));
  }

  private void setSlot(int at, int slot, String state, String id) {
    try (Connection connection = nodes.get(at).connect()) {
      connection.command("CLUSTER", "SETSLOT", slot, state, id);
    }
  }

  private String id(int node) {
    try (Connection connection = nodes.get(node).connect()) {
      return connection.text("CLUSTER", "MYID");
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
    replicas.forEach(Server::close);
    nodes.forEach(Server::close);
  }
}
