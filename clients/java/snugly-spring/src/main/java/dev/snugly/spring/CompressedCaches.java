package dev.snugly.spring;

import dev.snugly.core.Codec;
import dev.snugly.core.OnUndecodable;
import java.nio.ByteBuffer;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.boot.cache.autoconfigure.RedisCacheManagerBuilderCustomizer;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager.RedisCacheManagerBuilder;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.serializer.RedisElementReader;
import org.springframework.data.redis.serializer.RedisElementWriter;
import org.springframework.data.redis.serializer.RedisSerializationContext.SerializationPair;
import org.springframework.data.redis.util.ByteUtils;

/** Compresses the values of all caches, whatever serializes them. */
@Order(Ordered.LOWEST_PRECEDENCE) // After customizers that choose serializers.
final class CompressedCaches implements RedisCacheManagerBuilderCustomizer {
  private final Codec codec;

  /**
   * @param codec compresses them
   * @throws dev.snugly.core.ConfigurationException for an {@code exclude}
   */
  CompressedCaches(Codec codec) {
    this.codec = codec.forValuesWithoutKeys("a cache without snugly.connections=true");
  }

  @Override
  public void customize(RedisCacheManagerBuilder builder) {
    if (codec.configuration().onUndecodable() == OnUndecodable.MISS) {
      // It can be set and not be asked for.
      Object writer = new DirectFieldAccessor(builder).getPropertyValue("cacheWriter");
      builder.cacheWriter(ReadableEntries.of((RedisCacheWriter) writer, codec));
    }
    builder.cacheDefaults(compressed(builder.cacheDefaults()));
    for (String name : builder.getConfiguredCaches()) {
      builder
          .getCacheConfigurationFor(name)
          .ifPresent(each -> builder.withCacheConfiguration(name, compressed(each)));
    }
  }

  private RedisCacheConfiguration compressed(RedisCacheConfiguration configuration) {
    return configuration.serializeValuesWith(compressed(configuration.getValueSerializationPair()));
  }

  private <T> SerializationPair<T> compressed(SerializationPair<T> pair) {
    return new SerializationPair<>() {
      @Override
      public RedisElementReader<T> getReader() {
        return stored -> {
          byte[] value = SnuglyRedisSerializer.restored(ByteUtils.getBytes(stored), codec);
          return value == null ? null : pair.read(ByteBuffer.wrap(value));
        };
      }

      @Override
      public RedisElementWriter<T> getWriter() {
        return value -> ByteBuffer.wrap(codec.encode(ByteUtils.getBytes(pair.write(value))));
      }
    };
  }
}
