package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.PAGE;
import static dev.snugly.lettuce.Values.encoding;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Waiting;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.cluster.event.AskRedirectionEvent;
import io.lettuce.core.cluster.event.MovedRedirectionEvent;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;

/** A real cluster of valkey-servers. */
class ClusterTest {
  private static Cluster cluster;

  private SnuglyRedisClusterClient client;
  private StatefulRedisClusterConnection<String, String> connection;
  private RedisAdvancedClusterCommands<String, String> commands;

  @BeforeAll
  static void start() {
    cluster = Cluster.start(3);
  }

  @AfterAll
  static void stop() {
    if (cluster != null) {
      cluster.close();
    }
  }

  @BeforeEach
  void connect() {
    cluster.flush();
    client =
        SnuglyRedisClusterClient.create(
            List.of(RedisURI.create("127.0.0.1", cluster.nodes().get(0).port())),
            LettuceCompression.of(CompressionConfiguration.defaults()));
    connection = client.connect();
    commands = connection.sync();
  }

  @AfterEach
  void close() {
    client.shutdown();
  }

  private static byte[] storedAt(Server node, String key) {
    try (Connection plain = node.connect()) {
      return plain.bytes("GET", key);
    }
  }

  private static Server nodeOf(String key) {
    int slots = SlotHash.SLOT_COUNT;
    int count = cluster.nodes().size();
    for (int number = 0; number < count; number++) {
      if (SlotHash.getSlot(key) < slots * (number + 1) / count) {
        return cluster.nodes().get(number);
      }
    }
    throw new IllegalStateException(key);
  }

  @Test
  void valuesOfAllNodesAreCompressedOnce() {
    Map<String, String> values = new HashMap<>();
    for (int index = 0; index < 60; index++) {
      values.put("key" + index, index + PAGE);
    }
    commands.mset(values);
    for (Map.Entry<String, String> each : values.entrySet()) {
      byte[] stored = storedAt(nodeOf(each.getKey()), each.getKey());
      assertEquals(Encoding.ZSTD, encoding(stored));
      assertEquals(each.getValue(), new String(client.codec().decode(stored), UTF_8));
      assertEquals(each.getValue(), commands.get(each.getKey()));
    }
    String[] keys = values.keySet().toArray(new String[0]);
    commands.mget(keys).forEach(each -> assertEquals(values.get(each.getKey()), each.getValue()));
    assertEquals(60, client.statistics().total(Counter.ENCODED_VALUES));
    assertThrows(CommandRefusedException.class, () -> commands.append("key1", "more"));
  }

  @Test
  void connectionsToNodesCompressAndHaveTransactions() {
    commands.set("{a}page", PAGE);
    RedisClusterNode node = connection.getPartitions().getPartitionBySlot(SlotHash.getSlot("a"));
    RedisCommands<String, String> own = connection.getConnection(node.getNodeId()).sync();
    assertEquals(PAGE, own.get("{a}page"));
    own.multi();
    own.set("{a}other", PAGE);
    own.get("{a}other");
    assertEquals(PAGE, own.exec().get(1));
    assertEquals(Encoding.ZSTD, encoding(storedAt(nodeOf("a"), "{a}other")));
    assertThrows(CommandRefusedException.class, () -> own.strlen("{a}other"));
  }

  /** Slow, since the library decides when it reports a redirection, and not always in time. */
  @Test
  @Tag("slow")
  void valuesThatAreSentAgainAfterARedirectionAreTheSameBytes() {
    String key = "{moving}page";
    Server from = nodeOf(key);
    Server to = cluster.nodes().stream().filter(node -> node != from).findFirst().orElseThrow();
    BlockingQueue<String> redirections = new LinkedBlockingQueue<>();
    Disposable events =
        client
            .getResources()
            .eventBus()
            .get()
            .subscribe(
                event -> {
                  if (event instanceof AskRedirectionEvent) {
                    redirections.add("ASK");
                  } else if (event instanceof MovedRedirectionEvent) {
                    redirections.add("MOVED");
                  }
                });
    int slot = SlotHash.getSlot(key);
    try (Connection source = from.connect();
        Connection target = to.connect()) {
      String sourceId = source.text("CLUSTER", "MYID");
      String targetId = target.text("CLUSTER", "MYID");
      target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", sourceId);
      source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", targetId);
      commands.set(key, PAGE);
      assertEquals(PAGE, commands.get(key));
      target.command("CLUSTER", "SETSLOT", slot, "NODE", targetId);
      source.command("CLUSTER", "SETSLOT", slot, "NODE", targetId);
      commands.set(key, PAGE + "2");
      assertEquals(PAGE + "2", commands.get(key));
      byte[] stored = storedAt(to, key);
      assertEquals(PAGE + "2", new String(client.codec().decode(stored), UTF_8));
      Waiting.until(
          "both kinds of redirection were followed",
          () -> redirections.containsAll(List.of("ASK", "MOVED")));
      assertEquals(2, client.statistics().total(Counter.ENCODED_VALUES));
      target.command("DEL", key);
      for (Server node : cluster.nodes()) {
        try (Connection each = node.connect()) {
          each.command("CLUSTER", "SETSLOT", slot, "NODE", sourceId);
        }
      }
    } finally {
      events.dispose();
    }
  }
}
