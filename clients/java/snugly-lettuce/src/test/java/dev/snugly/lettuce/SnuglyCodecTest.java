package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.PAGE;
import static dev.snugly.lettuce.Values.encodingAt;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import dev.snugly.core.UndecodableException;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;

/** A codec under Lettuce's own client. */
class SnuglyCodecTest {
  private static final CompressionConfiguration DEFAULTS = CompressionConfiguration.defaults();

  @Test
  void aConnectionThatOnlyCachesNeedsNoOtherClient() {
    SnuglyCodec<String, String> codec = new SnuglyCodec<>(StringCodec.UTF8, DEFAULTS);
    try (Server server = Server.valkey();
        Connection plain = server.connect()) {
      RedisClient client = RedisClient.create("redis://127.0.0.1:" + server.port());
      try {
        RedisCommands<String, String> commands = client.connect(codec).sync();
        commands.set("page", PAGE);
        assertEquals(Encoding.ZSTD, encodingAt(plain, "page"));
        assertEquals(PAGE, commands.get("page"));
        plain.command("SET", "damaged", Values.DAMAGED);
        assertThrows(UndecodableException.class, () -> commands.get("damaged"));
        assertEquals(PAGE, commands.get("page"));
      } finally {
        client.shutdown();
      }
    }
    assertEquals(1, codec.statistics().total(Counter.ENCODED_VALUES));
  }

  @Test
  void aCatalogueIsForClients() {
    CompressionConfiguration catalogue = CompressionConfiguration.builder().catalogue(true).build();
    assertThrows(
        ConfigurationException.class, () -> new SnuglyCodec<>(StringCodec.UTF8, catalogue));
  }

  @Test
  void keysAreNotKnownSoNoneCanBeExcluded() {
    CompressionConfiguration excluding =
        CompressionConfiguration.builder().exclude(List.of("lock:*")).build();
    ConfigurationException error =
        assertThrows(
            ConfigurationException.class, () -> new SnuglyCodec<>(StringCodec.UTF8, excluding));
    assertTrue(error.getMessage().contains("does not know the keys"), error.getMessage());
  }

  @Property(tries = 300)
  void everyValueComesBackByBothWaysOfEncoding(
      @ForAll long seed,
      @ForAll @IntRange(max = 5000) int noise,
      @ForAll @IntRange(max = 5000) int zeros) {
    byte[] value = new byte[noise + zeros];
    System.arraycopy(Vectors.noise(seed, noise), 0, value, 0, noise);
    roundTrip(new SnuglyCodec<>(ByteArrayCodec.INSTANCE, DEFAULTS), value);
    roundTrip(new SnuglyCodec<>(new WithoutBuffers(), DEFAULTS), value);
  }

  private static void roundTrip(SnuglyCodec<byte[], byte[]> codec, byte[] value) {
    assertArrayEquals(value, codec.decodeValue(codec.encodeValue(value)));
    ByteBuf target = Unpooled.buffer();
    target.writeByte('x');
    codec.encodeValue(value, target);
    assertEquals('x', target.readByte());
    assertArrayEquals(value, codec.decodeValue(target.nioBuffer()));
    assertTrue(target.readableBytes() <= value.length);
    codec.encodeKey(value, target.clear());
    assertArrayEquals(value, codec.decodeKey(target.nioBuffer()));
    assertArrayEquals(value, codec.decodeKey(codec.encodeKey(value)));
  }

  /** A codec that does not write into buffers itself. */
  private static final class WithoutBuffers implements RedisCodec<byte[], byte[]> {
    @Override
    public byte[] decodeKey(ByteBuffer bytes) {
      return decodeValue(bytes);
    }

    @Override
    public byte[] decodeValue(ByteBuffer bytes) {
      byte[] value = new byte[bytes.remaining()];
      bytes.get(value);
      return value;
    }

    @Override
    public ByteBuffer encodeKey(byte[] key) {
      return ByteBuffer.wrap(key);
    }

    @Override
    public ByteBuffer encodeValue(byte[] value) {
      return ByteBuffer.wrap(value);
    }
  }
}
