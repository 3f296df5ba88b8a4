package dev.snugly.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import glide.api.BaseClient;
import glide.api.GlideClient;
import glide.api.GlideClusterClient;
import glide.api.models.configuration.BaseClientConfiguration.BaseClientConfigurationBuilder;
import glide.api.models.configuration.GlideClientConfiguration;
import glide.api.models.configuration.GlideClusterClientConfiguration;
import glide.api.models.configuration.NodeAddress;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A real GLIDE with its own compression, beside Lettuce with snugly's, at the same servers. */
@EnabledOnOs(value = OS.LINUX, architectures = "amd64")
@Tag("slow")
class GlideTest {
  /** Longer than what is decoded on the event loop. */
  private static final String LONG = Values.PAGE.repeat(100);

  /** Milliseconds for a request. GLIDE gives it 250, which a busy machine can miss. */
  private static final int PATIENCE = 60_000;

  private static final Map<String, String> VALUES =
      Map.of("empty", "", "short", "short", "number", "7", "page", Values.PAGE, "long", LONG);

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void eachReadsWhatTheOtherHasWritten(CompressionBackend backend) throws Exception {
    try (Server server = Server.valkey();
        Connection plain = server.connect();
        GlideClient glide = glide(server, backend)) {
      SnuglyRedisClient client =
          SnuglyRedisClient.create(
              RedisURI.create("127.0.0.1", server.port()), compression(backend));
      try {
        RedisCommands<String, String> commands = client.connect().sync();
        writeAndRead(glide, commands);
        for (String writer : List.of("glide:", "snugly:")) {
          assertEquals(Encoding.IDENTITY, Values.encodingAt(plain, writer + "short"));
          assertEquals(Encoding.valueOf(backend.name()), Values.encodingAt(plain, writer + "page"));
          assertEquals(Encoding.valueOf(backend.name()), Values.encodingAt(plain, writer + "long"));
        }
        commands.multi();
        commands.get("glide:long");
        commands.get("glide:page");
        assertEquals(List.of(LONG, Values.PAGE), commands.exec().stream().toList());
      } finally {
        client.shutdown();
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void eachReadsWhatTheOtherHasWrittenInACluster(CompressionBackend backend) throws Exception {
    try (Cluster cluster = Cluster.start(3)) {
      Server first = cluster.nodes().get(0);
      SnuglyRedisClusterClient client =
          SnuglyRedisClusterClient.create(
              List.of(RedisURI.create("127.0.0.1", first.port())), compression(backend));
      try (GlideClusterClient glide = glideOfCluster(first, backend)) {
        RedisAdvancedClusterCommands<String, String> commands = client.connect().sync();
        writeAndRead(glide, commands);
      } finally {
        client.shutdown();
      }
    }
  }

  private static void writeAndRead(BaseClient glide, RedisClusterCommands<String, String> commands)
      throws InterruptedException, ExecutionException {
    Map<String, String> written = new LinkedHashMap<>();
    for (Map.Entry<String, String> each : VALUES.entrySet()) {
      String name = each.getKey();
      commands.set("snugly:" + name, each.getValue());
      assertEquals(each.getValue(), glide.get("snugly:" + name).get(), name);
      glide.set("glide:" + name, each.getValue()).get();
      assertEquals(each.getValue(), commands.get("glide:" + name), name);
      written.put("snugly:" + name, each.getValue());
      written.put("glide:" + name, each.getValue());
    }
    String[] keys = written.keySet().toArray(new String[0]);
    List<String> values = List.copyOf(written.values());
    assertEquals(values, commands.mget(keys).stream().map(KeyValue::getValue).toList());
    assertEquals(values, List.of(glide.mget(keys).get()));
  }

  private static LettuceCompression compression(CompressionBackend backend) {
    return LettuceCompression.of(CompressionConfiguration.builder().backend(backend).build());
  }

  private static void configure(
      BaseClientConfigurationBuilder<?, ?> settings, Server server, CompressionBackend backend) {
    settings
        .address(NodeAddress.builder().host("127.0.0.1").port(server.port()).build())
        .requestTimeout(PATIENCE)
        .compressionConfiguration(
            glide.api.models.configuration.CompressionConfiguration.builder()
                .enabled(true)
                .backend(glide.api.models.configuration.CompressionBackend.valueOf(backend.name()))
                .build());
  }

  private static GlideClient glide(Server server, CompressionBackend backend)
      throws InterruptedException, ExecutionException {
    var settings = GlideClientConfiguration.builder();
    configure(settings, server, backend);
    return GlideClient.createClient(settings.build()).get();
  }

  private static GlideClusterClient glideOfCluster(Server node, CompressionBackend backend)
      throws InterruptedException, ExecutionException {
    var settings = GlideClusterClientConfiguration.builder();
    configure(settings, node, backend);
    return GlideClusterClient.createClient(settings.build()).get();
  }
}
