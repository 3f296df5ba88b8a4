package dev.snugly.jedis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Envelope;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import java.util.Set;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Response;

/** A client that a sentinel tells where the server is. */
class SnuglyRedisSentinelClientTest {
  private static final String PAGE = "<p>hello</p>".repeat(100);

  @Test
  void valuesAreCompressedOnTheServerThatTheSentinelNames() {
    try (Server server = Server.valkey();
        Server sentinel = Server.sentinel(server);
        Connection plain = server.connect();
        SnuglyRedisSentinelClient cache =
            SnuglyRedisSentinelClient.builder(CompressionConfiguration.defaults())
                .masterName("cache")
                .sentinels(Set.of(new HostAndPort("127.0.0.1", sentinel.port())))
                .build()) {
      cache.set("a", PAGE);
      assertEquals(PAGE, cache.get("a"));
      assertEquals(server.port(), cache.getCurrentMaster().getPort());
      assertEquals(1, cache.getPrimaryNodesConnectionMap().size());
      try (CompressingPipeline pipeline = cache.pipelined()) {
        Response<String> a = pipeline.get("a");
        pipeline.sync();
        assertEquals(PAGE, a.get());
      }
      try (AbstractTransaction transaction = cache.multi()) {
        transaction.set("b", PAGE);
        transaction.get("b");
        assertEquals(PAGE, transaction.exec().get(1));
      }
      assertTrue(Envelope.inspect(plain.bytes("GET", "b")).isPresent());
    }
  }
}
