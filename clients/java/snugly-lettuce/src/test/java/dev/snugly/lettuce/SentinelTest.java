package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.PAGE;
import static dev.snugly.lettuce.Values.encodingAt;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import io.lettuce.core.ReadFrom;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.masterreplica.MasterReplica;
import io.lettuce.core.masterreplica.StatefulRedisMasterReplicaConnection;
import org.junit.jupiter.api.Test;

/** A real valkey-server that a real sentinel names. */
class SentinelTest {
  @Test
  void thePrimaryIsFoundAndValuesAreCompressedOnce() {
    try (Server primary = Server.valkey();
        Server sentinel = Server.sentinel(primary);
        Connection plain = primary.connect()) {
      RedisURI uri = RedisURI.Builder.sentinel("127.0.0.1", sentinel.port(), "cache").build();
      SnuglyRedisClient client =
          SnuglyRedisClient.create(uri, LettuceCompression.of(CompressionConfiguration.defaults()));
      try {
        RedisCommands<String, String> commands = client.connect().sync();
        commands.set("page", PAGE);
        assertEquals(Encoding.ZSTD, encodingAt(plain, "page"));
        assertEquals(PAGE, commands.get("page"));
        StatefulRedisMasterReplicaConnection<String, String> replicas =
            MasterReplica.connect(client, StringCodec.UTF8, uri);
        replicas.setReadFrom(ReadFrom.REPLICA_PREFERRED);
        replicas.sync().set("other", PAGE);
        assertEquals(PAGE, replicas.sync().get("other"));
        assertEquals(PAGE, commands.get("other"));
      } finally {
        client.shutdown();
      }
    }
  }
}
