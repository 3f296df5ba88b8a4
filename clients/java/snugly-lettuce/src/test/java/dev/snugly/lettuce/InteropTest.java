package dev.snugly.lettuce;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Needed;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Values that others have written, and other servers. */
@Tag("slow")
class InteropTest {
  private static final String READ_AND_WRITE =
      """
      import sys
      import snugly

      port, backend = int(sys.argv[1]), sys.argv[2]
      chosen = snugly.CompressionConfiguration(backend=backend)
      with snugly.Valkey(port=port, compression=chosen) as cache:
          cache.set("from-python", cache.get("from-java") + b"!")
      """;

  @Test
  void whatGlideAndOtherClientsHaveWrittenIsRead() {
    try (Server server = Server.valkey();
        Connection plain = server.connect()) {
      SnuglyRedisClient client =
          SnuglyRedisClient.create(
              "redis://127.0.0.1:" + server.port(), CompressionConfiguration.defaults());
      try {
        RedisCommands<byte[], byte[]> commands = client.connect(ByteArrayCodec.INSTANCE).sync();
        byte[] key = Values.bytes("key");
        for (String name : List.of("profiles", "orders")) {
          Dictionary dictionary = Dictionary.of(Vectors.dictionary(name));
          plain.command("SET", "{snugly}:dict:" + dictionary.id(), dictionary.bytes());
        }
        Set<String> writers = new HashSet<>();
        for (JsonObject each : Vectors.objects(Vectors.read("envelopes.json").get("cases"))) {
          if (!isValueOfSomebody(each)) {
            continue;
          }
          writers.add(each.get("made_by").getAsString().split(" ", 2)[0]);
          plain.command("SET", key, Vectors.expand(each.get("envelope")));
          assertArrayEquals(
              Vectors.expand(each.get("value")),
              commands.get(key),
              () -> each.get("name").getAsString());
        }
        assertTrue(writers.containsAll(List.of("glide", "snugly")), writers::toString);
        assertEquals(2, client.statistics().total(Counter.DICTIONARIES_FETCHED));
      } finally {
        client.shutdown();
      }
    }
  }

  private static boolean isValueOfSomebody(JsonObject each) {
    return each.get("expect").getAsString().equals("value")
        && !each.get("made_by").getAsString().equals("hand");
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void pythonReadsWhatWeWriteAndWeReadWhatItWrites(CompressionBackend backend) throws Exception {
    String python = Needed.program("SNUGLY_PYTHON");
    try (Server server = Server.valkey();
        Connection plain = server.connect()) {
      String port = Integer.toString(server.port());
      SnuglyRedisClient client =
          SnuglyRedisClient.create(
              "redis://127.0.0.1:" + port,
              CompressionConfiguration.builder().backend(backend).build());
      try {
        RedisCommands<String, String> commands = client.connect().sync();
        commands.set("from-java", Values.PAGE);
        Process process =
            new ProcessBuilder(python, "-c", READ_AND_WRITE, port, backend.toString())
                .redirectErrorStream(true)
                .start();
        assertEquals("", new String(process.getInputStream().readAllBytes(), UTF_8));
        assertEquals(Encoding.valueOf(backend.name()), Values.encodingAt(plain, "from-python"));
        assertEquals(Values.PAGE + "!", commands.get("from-python"));
      } finally {
        client.shutdown();
      }
    }
  }

  @Test
  void snuglysOwnServerGetsEnvelopesAndKeepsThem() {
    try (Server server = Server.snugly();
        Connection plain = server.connect()) {
      SnuglyRedisClient client =
          SnuglyRedisClient.create(
              "redis://127.0.0.1:" + server.port(), CompressionConfiguration.defaults());
      try {
        RedisCommands<String, String> commands = client.connect().sync();
        commands.set("page", Values.PAGE);
        assertEquals(Encoding.ZSTD, Values.encodingAt(plain, "page"));
        assertEquals(Values.PAGE, commands.get("page"));
        commands.multi();
        commands.get("page");
        assertEquals(Values.PAGE, commands.exec().get(0));
      } finally {
        client.shutdown();
      }
    }
  }
}
