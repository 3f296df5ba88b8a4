package dev.snugly.valkey;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import io.valkey.DefaultJedisClientConfig;
import io.valkey.HostAndPort;
import io.valkey.JedisClientConfig;
import io.valkey.JedisCluster;
import io.valkey.exceptions.JedisClusterOperationException;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A cluster whose slots move while a client is connected. */
@Tag("slow")
class ChangingClusterTest {
  private static final String PAGE = "<p>hello</p>".repeat(100);

  private Cluster cluster;
  private SnuglyJedis cache;
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
        SnuglyJedis.cluster(
            nodes(),
            DefaultJedisClientConfig.builder().build(),
            CompressionConfiguration.defaults());
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
  void commandsAreTriedAgainForAsLongAsJedisClusterDoesByItsTimeout() {
    JedisClientConfig noTime = DefaultJedisClientConfig.builder().socketTimeoutMillis(0).build();
    try (JedisCluster plain = new JedisCluster(nodes(), noTime);
        SnuglyJedis hasty =
            SnuglyJedis.cluster(nodes(), noTime, CompressionConfiguration.defaults())) {
      cluster.move(slot, other);
      assertThrows(JedisClusterOperationException.class, () -> plain.get("page"));
      assertThrows(JedisClusterOperationException.class, () -> hasty.get("page"));
    }
  }

  private Set<HostAndPort> nodes() {
    return Set.of(new HostAndPort("127.0.0.1", cluster.nodes().get(0).port()));
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
