package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.PAGE;
import static dev.snugly.lettuce.Values.encodingAt;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Factories of clients. A subclass has the static methods of Lettuce's class, too. */
class FactoriesTest {
  private static final CompressionConfiguration DEFAULTS = CompressionConfiguration.defaults();

  @ParameterizedTest
  @ValueSource(classes = {SnuglyRedisClient.class, SnuglyRedisClusterClient.class})
  void noWayOfLettuceToMakeAClientMakesOneThatDoesNotCompress(Class<?> compressing)
      throws ReflectiveOperationException {
    for (Method method : compressing.getSuperclass().getMethods()) {
      if (Modifier.isStatic(method.getModifiers()) && method.getName().equals("create")) {
        Method hiding = compressing.getMethod("create", method.getParameterTypes());
        assertEquals(compressing, hiding.getReturnType(), method.toString());
      }
    }
  }

  @Test
  void aClientWithoutAConfigurationCompressesWithTheDefaults() {
    ClientResources shared = DefaultClientResources.create();
    try (Server server = Server.valkey();
        Connection plain = server.connect()) {
      String uri = "redis://127.0.0.1:" + server.port();
      RedisURI parsed = RedisURI.create(uri);
      List<RedisClient> clients =
          List.of(
              SnuglyRedisClient.create(),
              SnuglyRedisClient.create(uri),
              SnuglyRedisClient.create(parsed),
              SnuglyRedisClient.create(shared),
              SnuglyRedisClient.create(shared, uri),
              SnuglyRedisClient.create(shared, parsed));
      for (RedisClient client : clients) {
        try (StatefulRedisConnection<String, String> connection = client.connect(parsed)) {
          plain.command("DEL", "page");
          connection.sync().set("page", PAGE);
          assertEquals(Encoding.ZSTD, encodingAt(plain, "page"));
        }
      }
      clients.forEach(AbstractRedisClient::shutdown);
    } finally {
      shared.shutdown().syncUninterruptibly();
    }
  }

  @Test
  @Tag("slow")
  void aClientOfAClusterWithoutAConfigurationCompressesWithTheDefaults() {
    ClientResources shared = DefaultClientResources.create();
    try (Cluster cluster = Cluster.start(3)) {
      String uri = "redis://" + addresses(cluster);
      List<RedisURI> nodes =
          cluster.nodes().stream().map(each -> RedisURI.create("127.0.0.1", each.port())).toList();
      List<RedisClusterClient> clients =
          List.of(
              SnuglyRedisClusterClient.create(uri),
              SnuglyRedisClusterClient.create(uri, DEFAULTS),
              SnuglyRedisClusterClient.create(nodes.get(0)),
              SnuglyRedisClusterClient.create(nodes),
              SnuglyRedisClusterClient.create(shared, uri),
              SnuglyRedisClusterClient.create(shared, nodes.get(0)),
              SnuglyRedisClusterClient.create(shared, nodes));
      for (RedisClusterClient client : clients) {
        try (StatefulRedisClusterConnection<String, String> connection = client.connect()) {
          connection.sync().set("page", PAGE);
        }
        SnuglyRedisClusterClient compressing = (SnuglyRedisClusterClient) client;
        assertEquals(1L, compressing.statistics().asMap().get("encodedValuesZstd"));
      }
      clients.forEach(AbstractRedisClient::shutdown);
    } finally {
      shared.shutdown().syncUninterruptibly();
    }
  }

  private static String addresses(Cluster cluster) {
    return String.join(
        ",", cluster.nodes().stream().map(each -> "127.0.0.1:" + each.port()).toList());
  }

  @Test
  void whatIsMissingIsNamedWhereItIsLeftOut() {
    RedisURI uri = RedisURI.create("redis://127.0.0.1");
    RedisCodec<String, String> none = null;
    assertNamed("compression", () -> SnuglyRedisClient.create(uri, null));
    assertNamed("compression", () -> SnuglyRedisClusterClient.create(List.of(uri), null));
    assertNamed("configuration", () -> SnuglyRedisClient.create("redis://127.0.0.1", null));
    assertNamed("inner", () -> new SnuglyCodec<>(none, DEFAULTS));
    assertNamed("configuration", () -> new SnuglyCodec<>(StringCodec.UTF8, null));
  }

  private static void assertNamed(String what, Runnable left) {
    assertEquals(what, assertThrows(NullPointerException.class, left::run).getMessage());
  }
}
