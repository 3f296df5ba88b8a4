package dev.snugly.lettuce;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.ToByteBufEncoder;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A codec that compresses the values of another one, for connections that do nothing but cache.
 *
 * <p>A codec does not see commands: members of sets, messages and arguments of scripts are
 * compressed, too, nothing is refused, and everything is done on the event loop, however long it
 * is. {@link SnuglyRedisClient} has none of these limits.
 *
 * @param <K> the type of keys
 * @param <V> the type of values
 */
public final class SnuglyCodec<K, V> implements RedisCodec<K, V>, ToByteBufEncoder<K, V> {
  private final RedisCodec<K, V> inner;
  private final Codec codec;

  /**
   * A codec around another one.
   *
   * @param inner makes bytes of keys and values
   * @param configuration how to compress
   * @throws dev.snugly.core.ConfigurationException for {@code catalogue(true)}, which only clients
   *     can read, and for an {@code exclude}, since a codec does not see whose value it encodes
   */
  public SnuglyCodec(RedisCodec<K, V> inner, CompressionConfiguration configuration) {
    this.inner = Objects.requireNonNull(inner, "inner");
    codec =
        new Codec(Objects.requireNonNull(configuration, "configuration"))
            .forValuesWithoutKeys("a codec of Lettuce");
  }

  /** Returns what this codec has counted. */
  public Statistics statistics() {
    return codec.statistics();
  }

  /** Returns what encodes and decodes, for meters. */
  public Codec codec() {
    return codec;
  }

  @Override
  public K decodeKey(ByteBuffer bytes) {
    return inner.decodeKey(bytes);
  }

  /**
   * {@inheritDoc}
   *
   * @throws dev.snugly.core.UndecodableException for what cannot be read: its command fails with
   *     it, and no other
   */
  @Override
  public V decodeValue(ByteBuffer bytes) {
    ByteBuffer value = codec.decode(bytes, null);
    return value == null ? null : inner.decodeValue(value);
  }

  @Override
  public ByteBuffer encodeKey(K key) {
    return inner.encodeKey(key);
  }

  @Override
  public ByteBuffer encodeValue(V value) {
    byte[] plain = ByteArrayCodec.INSTANCE.decodeValue(inner.encodeValue(value));
    return ByteBuffer.wrap(codec.encode(plain));
  }

  @Override
  public void encodeKey(K key, ByteBuf target) {
    if (inner instanceof ToByteBufEncoder) {
      encoder().encodeKey(key, target);
    } else {
      target.writeBytes(inner.encodeKey(key));
    }
  }

  @Override
  public void encodeValue(V value, ByteBuf target) {
    if (!(inner instanceof ToByteBufEncoder)) {
      encode(inner.encodeValue(value), target);
      return;
    }
    ByteBuf plain = PooledByteBufAllocator.DEFAULT.buffer(encoder().estimateSize(value));
    try {
      encoder().encodeValue(value, plain);
      encode(plain.nioBuffer(), target);
    } finally {
      plain.release();
    }
  }

  private void encode(ByteBuffer plain, ByteBuf target) {
    int most = Codec.maxEncodedSize(plain.remaining());
    target.ensureWritable(most);
    ByteBuffer room = target.nioBuffer(target.writerIndex(), most);
    codec.encode(plain, null, room);
    target.writerIndex(target.writerIndex() + room.position());
  }

  @SuppressWarnings("unchecked") // One that encodes these types is of these types.
  private ToByteBufEncoder<K, V> encoder() {
    return (ToByteBufEncoder<K, V>) inner;
  }

  @Override
  public int estimateSize(Object keyOrValue) {
    return inner instanceof ToByteBufEncoder ? encoder().estimateSize(keyOrValue) : 0;
  }
}
