package dev.snugly.spring;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.micrometer.SnuglyMetrics;
import dev.snugly.lettuce.LettuceCompression;
import dev.snugly.lettuce.SnuglyRedisClient;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingClass;
import org.springframework.boot.cache.autoconfigure.RedisCacheManagerBuilderCustomizer;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Compresses in applications of Spring Boot as the properties {@code snugly.*} say: the values of
 * caches, or with {@code snugly.connections} all values of strings. An application that has a
 * {@link CompressionConfiguration} of its own has that instead of the properties'.
 */
@AutoConfiguration(
    beforeName = {
      "org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration",
      "org.springframework.boot.cache.autoconfigure.CacheAutoConfiguration"
    })
@ConditionalOnBooleanProperty(name = "snugly.enabled", matchIfMissing = true)
@EnableConfigurationProperties(SnuglyProperties.class)
public class SnuglyAutoConfiguration {
  /** Called by Spring. */
  public SnuglyAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean
  CompressionConfiguration snuglyCompression(SnuglyProperties properties) {
    return properties.configuration();
  }

  /** Leaves caches alone where connections compress. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({RedisCacheManagerBuilderCustomizer.class, RedisCacheManager.class})
  @ConditionalOnBooleanProperty(
      name = "snugly.connections",
      havingValue = false,
      matchIfMissing = true)
  static class Caches {
    @Bean
    @ConditionalOnMissingBean
    Codec snuglyCodec(CompressionConfiguration configuration) {
      if (configuration.catalogue()) {
        throw new ConfigurationException(
            "catalogue is true, which needs connections that compress: set snugly.connections=true"
                + " and add the artifact snugly-lettuce, or leave the catalogue out");
      }
      return new Codec(configuration);
    }

    @Bean
    @ConditionalOnBooleanProperty(name = "snugly.caches", matchIfMissing = true)
    RedisCacheManagerBuilderCustomizer snuglyCaches(Codec codec) {
      return new CompressedCaches(codec);
    }
  }

  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({SnuglyRedisClient.class, LettuceConnectionFactory.class})
  @ConditionalOnBooleanProperty(name = "snugly.connections")
  static class Connections {
    @Bean
    static CompressedConnections snuglyConnections(
        ObjectProvider<CompressionConfiguration> configuration) {
      return new CompressedConnections(() -> LettuceCompression.of(configuration.getObject()));
    }
  }

  /** Meters of every codec that is a bean, where Micrometer is. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(MeterBinder.class)
  static class CodecMeters {
    @Bean
    MeterBinder snuglyCodecMeters(ListableBeanFactory beans) {
      return registry ->
          beans.getBeansOfType(Codec.class).forEach((name, codec) -> bind(name, codec, registry));
    }

    static void bind(String name, Codec codec, MeterRegistry registry) {
      new SnuglyMetrics(codec, Tags.of("name", name)).bindTo(registry);
    }
  }

  /** Meters of every factory of connections that compress and have been started. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({MeterBinder.class, SnuglyRedisClient.class, LettuceConnectionFactory.class})
  static class ConnectionMeters {
    @Bean
    MeterBinder snuglyConnectionMeters(ListableBeanFactory beans) {
      return registry ->
          beans
              .getBeansOfType(SnuglyLettuceConnectionFactory.class)
              .forEach(
                  (name, factory) -> {
                    if (factory.isRunning()) { // Before it has no codec.
                      CodecMeters.bind(name, factory.codec(), registry);
                    }
                  });
    }
  }

  /** Connections that should compress and cannot are an error, and not a cache that grows. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnMissingClass("dev.snugly.lettuce.SnuglyRedisClient")
  @ConditionalOnBooleanProperty(name = "snugly.connections")
  static class NoConnections {
    NoConnections() {
      throw new ConfigurationException(
          "snugly.connections is true, but the artifact snugly-lettuce is missing, by which"
              + " connections compress: add it, or leave the property out, and caches are"
              + " compressed with any client");
    }
  }
}
