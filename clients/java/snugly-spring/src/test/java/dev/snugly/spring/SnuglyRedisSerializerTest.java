package dev.snugly.spring;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.Counter;
import dev.snugly.core.UndecodableException;
import dev.snugly.testing.GzipFile;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.StringLength;
import org.junit.jupiter.api.Test;
import org.springframework.data.redis.serializer.JdkSerializationRedisSerializer;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.data.redis.serializer.SerializationException;

/** A serializer around others. */
class SnuglyRedisSerializerTest {
  private static final String PAGE = "<p>a page of some length</p>".repeat(40);

  private final Codec codec = new Codec(CompressionConfiguration.defaults());
  private final SnuglyRedisSerializer<String> text =
      new SnuglyRedisSerializer<>(RedisSerializer.string(), codec);

  @Property(tries = 300)
  void everyTextComesBack(@ForAll @StringLength(max = 3000) String value) {
    assertEquals(value, text.deserialize(text.serialize(value)));
  }

  @Test
  void valuesBecomeSmallerAndThoseOfBeforeAreRead() {
    byte[] plain = RedisSerializer.string().serialize(PAGE);
    byte[] stored = text.serialize(PAGE);
    assertTrue(stored.length < plain.length / 10);
    assertEquals(PAGE, text.deserialize(plain));
    assertEquals(1, codec.statistics().total(Counter.ENCODED_VALUES));
  }

  @Test
  void keysAreNotKnownSoNoneCanBeExcluded() {
    CompressionConfiguration excluding =
        CompressionConfiguration.builder().exclude(List.of("lock:*")).build();
    assertThrows(
        ConfigurationException.class,
        () -> new SnuglyRedisSerializer<>(RedisSerializer.string(), excluding));
  }

  @Test
  void whatASerializerWithGzipWroteIsReadWhereThatIsChosen() {
    byte[] file = GzipFile.of(PAGE);
    SnuglyRedisSerializer<String> reader =
        new SnuglyRedisSerializer<>(
            RedisSerializer.string(),
            CompressionConfiguration.builder().readGzip(true).maxDecompressedSize(2000).build());
    assertEquals(PAGE, reader.deserialize(file));
    assertEquals(PAGE, reader.deserialize(reader.serialize(PAGE)));
    byte[] bomb = GzipFile.of("x".repeat(1 << 20));
    assertThrows(SerializationException.class, () -> reader.deserialize(bomb));
    assertArrayEquals(
        file, new SnuglyRedisSerializer<>(RedisSerializer.byteArray(), codec).deserialize(file));
  }

  @Test
  void nullIsWhatTheOtherSerializerMakesOfIt() {
    assertArrayEquals(RedisSerializer.string().serialize(null), text.serialize(null));
    assertNull(text.deserialize(null));
    SnuglyRedisSerializer<Object> java =
        new SnuglyRedisSerializer<>(
            new JdkSerializationRedisSerializer(), CompressionConfiguration.defaults());
    assertArrayEquals(new byte[0], java.serialize(null));
    assertNull(java.deserialize(new byte[0]));
  }

  @Test
  void aSerializerMayHaveBytesForNullAndAValueForNoBytes() {
    RedisSerializer<String> withNull =
        new RedisSerializer<>() {
          @Override
          public byte[] serialize(String value) {
            return RedisSerializer.string().serialize(value == null ? PAGE : value);
          }

          @Override
          public String deserialize(byte[] bytes) {
            String value = bytes == null ? "absent" : RedisSerializer.string().deserialize(bytes);
            return PAGE.equals(value) ? null : value;
          }
        };
    SnuglyRedisSerializer<String> serializer = new SnuglyRedisSerializer<>(withNull, codec);
    byte[] stored = serializer.serialize(null);
    assertTrue(stored.length < PAGE.length() / 10);
    assertNull(serializer.deserialize(stored));
    assertEquals("absent", serializer.deserialize(null));
  }

  @Test
  void itSaysOfItselfWhatTheOtherSays() {
    assertEquals(String.class, text.getTargetType());
    assertTrue(text.canSerialize(String.class));
    assertFalse(text.canSerialize(Integer.class));
  }

  @Test
  void whatCannotBeReadIsAnErrorOfSerialization() {
    byte[] damaged = {0, 1, 2, 0, 1, 9, 9, 9, 9};
    SerializationException error =
        assertThrows(SerializationException.class, () -> text.deserialize(damaged));
    assertInstanceOf(UndecodableException.class, error.getCause());
  }

  @Test
  void whatIsMissingIsNamedWhereItIsLeftOut() {
    RedisSerializer<String> none = null;
    assertEquals(
        "inner",
        assertThrows(NullPointerException.class, () -> new SnuglyRedisSerializer<>(none, codec))
            .getMessage());
  }
}
