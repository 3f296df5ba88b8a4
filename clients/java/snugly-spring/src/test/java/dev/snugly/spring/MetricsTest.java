package dev.snugly.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.snugly.testing.Server;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Meters that an application's registry has without being told. */
class MetricsTest {
  private static final String PAGE = "<p>a page of some length</p>".repeat(40);

  private static Server server;

  @Configuration(proxyBeanMethods = false)
  @EnableCaching
  static class WithCaches {}

  @BeforeAll
  static void start() {
    server = Server.valkey();
  }

  @AfterAll
  static void stop() {
    if (server != null) {
      server.close();
    }
  }

  @Test
  void cachesHaveMeters() {
    try (ConfigurableApplicationContext application = run()) {
      application.getBean(CacheManager.class).getCache("pages").put("1", PAGE);
      assertEquals(1, encodedValues(application, "snuglyCodec"));
    }
  }

  @Test
  void connectionsHaveMeters() {
    try (ConfigurableApplicationContext application = run("snugly.connections=true")) {
      application.getBean(StringRedisTemplate.class).opsForValue().set("page", PAGE);
      assertEquals(1, encodedValues(application, "redisConnectionFactory"));
    }
  }

  private static double encodedValues(ConfigurableApplicationContext application, String name) {
    return application
        .getBean(MeterRegistry.class)
        .get("snugly.encoded_values")
        .tags("name", name, "codec", "zstd")
        .functionCounter()
        .count();
  }

  private static ConfigurableApplicationContext run(String... properties) {
    return Applications.run(server, List.of(Applications.Bare.class, WithCaches.class), properties);
  }
}
