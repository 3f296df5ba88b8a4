package dev.snugly.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.snugly.core.Encoding;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;

/** Applications with Jedis. It is run with a class path that has no Lettuce. */
@Tag("without-lettuce")
@Tag("slow")
class WithoutLettuceTest {
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
  void thereIsNoLettuce() {
    assertThrows(
        ClassNotFoundException.class, () -> Class.forName("io.lettuce.core.AbstractRedisClient"));
  }

  @Test
  void cachesAreCompressedByJedis() {
    try (Connection plain = server.connect();
        ConfigurableApplicationContext application = run()) {
      assertInstanceOf(
          JedisConnectionFactory.class, application.getBean(RedisConnectionFactory.class));
      application.getBean(CacheManager.class).getCache("pages").put("1", PAGE);
      assertEquals(Encoding.ZSTD, Applications.encodingAt(plain, "pages::1"));
      assertEquals(
          PAGE, application.getBean(CacheManager.class).getCache("pages").get("1", String.class));
    }
  }

  @Test
  void anApplicationThatWantsItsConnectionsCompressedDoesNotStart() {
    Applications.assertFails("snugly-lettuce", () -> run("snugly.connections=true"));
  }

  private static ConfigurableApplicationContext run(String... properties) {
    return Applications.run(server, List.of(Applications.Bare.class, WithCaches.class), properties);
  }
}
