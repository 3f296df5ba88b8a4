package dev.snugly.spring;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.SnuglyException;
import java.util.Objects;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.data.redis.serializer.SerializationException;

/**
 * A serializer that compresses what another one makes.
 *
 * <pre>{@code
 * Codec codec = new Codec(CompressionConfiguration.defaults());
 * template.setValueSerializer(new SnuglyRedisSerializer<>(RedisSerializer.json(), codec));
 * }</pre>
 *
 * <p>A template uses its serializer of values for members of sets and for messages, too: compressed
 * members are found only by clients that compress them to the same bytes. Where a template does
 * more than to cache, {@link SnuglyLettuceConnectionFactory} is better, which sees commands.
 *
 * @param <T> the type of values
 */
public final class SnuglyRedisSerializer<T> implements RedisSerializer<T> {
  private final RedisSerializer<T> inner;
  private final Codec codec;

  /**
   * A serializer around another one.
   *
   * @param inner makes bytes of values
   * @param codec compresses them; it may be shared, and counts what it does
   * @throws dev.snugly.core.ConfigurationException for an {@code exclude}, since a serializer does
   *     not know keys
   */
  public SnuglyRedisSerializer(RedisSerializer<T> inner, Codec codec) {
    this.inner = Objects.requireNonNull(inner, "inner");
    this.codec = Objects.requireNonNull(codec, "codec").forValuesWithoutKeys("a serializer");
  }

  /**
   * A serializer around another one, with a codec of its own.
   *
   * @param inner makes bytes of values
   * @param configuration how to compress
   * @throws dev.snugly.core.ConfigurationException for {@code catalogue(true)}, which only clients
   *     can read, and for an {@code exclude}
   */
  public SnuglyRedisSerializer(RedisSerializer<T> inner, CompressionConfiguration configuration) {
    this(inner, new Codec(configuration));
  }

  /**
   * Serializes a value and compresses it. What cannot be compressed is left as it is.
   *
   * @param value may be null
   * @return the bytes to store; what the other serializer makes of null, as it is
   * @throws SerializationException if the other serializer throws it
   */
  @Override
  public byte[] serialize(T value) {
    byte[] bytes = inner.serialize(value);
    return bytes == null ? null : codec.encode(bytes);
  }

  /**
   * Restores a value: one that is not compressed, too, and where the configuration says so a GZIP
   * file.
   *
   * @param bytes what is stored, or null
   * @return the value, or null, also with {@link dev.snugly.core.OnUndecodable#MISS} for what
   *     cannot be read
   * @throws SerializationException for what cannot be read, and if the other serializer throws it
   */
  @Override
  public T deserialize(byte[] bytes) {
    return inner.deserialize(bytes == null ? null : restored(bytes, codec));
  }

  /** The stored value, decoded; null if it cannot be read and is to be missed. */
  static byte[] restored(byte[] bytes, Codec codec) {
    try {
      return codec.decode(bytes);
    } catch (SnuglyException error) {
      throw new SerializationException(error.getMessage(), error);
    }
  }

  @Override
  public boolean canSerialize(Class<?> type) {
    return inner.canSerialize(type);
  }

  @Override
  public Class<?> getTargetType() {
    return inner.getTargetType();
  }
}
