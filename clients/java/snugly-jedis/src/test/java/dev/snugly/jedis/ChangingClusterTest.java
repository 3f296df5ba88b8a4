package dev.snugly.jedis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Waiting;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.ClusterCommandObjects;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisProtocol;

/** A cluster whose slots move while a client is connected, and one with a replica. */
@Tag("slow")
class ChangingClusterTest {
  private static final String PAGE = "<p>hello</p>".repeat(100);

  private Cluster cluster;
  private SnuglyRedisClusterClient cache;
  private int slot;
  private int owner;
  private int other;

  @BeforeEach
  void start() {
    cluster = Cluster.start(3);
    slot = cluster.slot("page");
    owner = cluster.owner(slot);
    other = (owner + 1) % 3;
    cache =
        SnuglyRedisClusterClient.builder(CompressionConfiguration.defaults())
            .nodes(Set.of(new HostAndPort("127.0.0.1", cluster.nodes().get(0).port())))
            .clientConfig(
                DefaultJedisClientConfig.builder().readOnlyForRedisClusterReplicas().build())
            .build();
  }

  @AfterEach
  void stop() {
    if (cache != null) {
      cache.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @Test
  void aValueFollowsItsSlotToAnotherNodeEncodedOnce() {
    cluster.move(slot, other);
    cache.set("page", PAGE);
    assertEquals(PAGE, cache.get("page"));
    assertEquals(List.of(PAGE), cache.mget("page"));
    assertRedirected("MOVED");
    assertEncodedOnceAtOther();
  }

  @Test
  void aValueOfASlotThatMovesIsAskedForAtTheOtherNodeEncodedOnce() {
    cluster.beginToMove(slot, owner, other);
    cache.set("page", PAGE);
    assertEquals(PAGE, cache.get("page"));
    assertRedirected("ASK");
    cluster.move(slot, other);
    assertEncodedOnceAtOther();
  }

  @Test
  void aReplicaIsReadFromAndItsValueRestored() {
    String key = keyOfFirstNode();
    Server replica = cluster.addReplica();
    cache.refreshClusterTopology();
    cache.set(key, PAGE);
    try (Connection connection = replica.connect()) {
      connection.command("READONLY");
      Waiting.until("it is replicated", () -> connection.bytes("GET", key) != null);
      long before = reads(connection);
      assertEquals(
          PAGE,
          cache.executeCommandToReplica(new ClusterCommandObjects(RedisProtocol.RESP2).get(key)));
      assertEquals(before + 1, reads(connection));
    }
  }

  /** A key in a slot of the first node. */
  private String keyOfFirstNode() {
    int number = 0;
    while (cluster.owner(cluster.slot("key:" + number)) != 0) {
      number++;
    }
    return "key:" + number;
  }

  private static long reads(Connection connection) {
    String line =
        connection
            .text("INFO", "commandstats")
            .lines()
            .filter(each -> each.startsWith("cmdstat_get:"))
            .findFirst()
            .orElseThrow();
    return Long.parseLong(line.substring(line.indexOf('=') + 1, line.indexOf(',')));
  }

  private void assertRedirected(String error) {
    try (Connection connection = cluster.nodes().get(owner).connect()) {
      String counted = connection.text("INFO", "errorstats");
      assertTrue(counted.contains("errorstat_" + error + ":"), counted);
    }
  }

  private void assertEncodedOnceAtOther() {
    try (Connection connection = cluster.nodes().get(other).connect()) {
      byte[] stored = connection.bytes("GET", "page");
      assertTrue(stored.length < PAGE.length() / 10);
      assertArrayEquals(PAGE.getBytes(UTF_8), cache.codec().decode(stored));
    }
    assertEquals(1, cache.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD));
  }
}
