package dev.snugly.spring;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Which factories of connections are replaced, and what becomes of them. */
class ConnectionFactoriesTest {
  private static final String PAGE = "<p>a page of some length</p>".repeat(40);
  private static final String USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"plan\": \"plan-3\"}";

  private static Server server;

  /** One that the application has made for itself. */
  static class OwnFactory extends LettuceConnectionFactory {
    OwnFactory() {
      super(new RedisStandaloneConfiguration("127.0.0.1", server.port()));
    }
  }

  @Configuration(proxyBeanMethods = false)
  static class WithOwnFactory {
    @Bean
    OwnFactory connections() {
      return new OwnFactory();
    }
  }

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
  void anApplicationWithoutConnectionsThatCanCompressDoesNotStart() {
    Applications.assertFails(
        "redisConnectionFactory is a JedisConnectionFactory",
        () -> run("snugly.connections=true", "spring.data.redis.client-type=jedis"));
    Applications.assertFails(
        "connections is a OwnFactory",
        () ->
            Applications.run(
                server,
                List.of(Applications.Bare.class, WithOwnFactory.class),
                "snugly.connections=true"));
  }

  @Test
  void theFactoryInPlaceOfAnotherIsDestroyedWithItsApplication() {
    SnuglyLettuceConnectionFactory factory;
    try (ConfigurableApplicationContext application = run("snugly.connections=true")) {
      factory = application.getBean(SnuglyLettuceConnectionFactory.class);
      assertTrue(factory.isRunning());
    }
    factory.start();
    assertFalse(factory.isRunning());
  }

  @Test
  void dictionariesAreFoundBesideAPrimaryAndItsReplicas() {
    Dictionary dictionary = Dictionary.of(Vectors.dictionary("profiles"));
    Codec writer = new Codec(CompressionConfiguration.builder().dictionary(dictionary).build());
    try (Connection plain = server.connect();
        ConfigurableApplicationContext application =
            run(
                "snugly.connections=true",
                "spring.data.redis.masterreplica.nodes=127.0.0.1:" + server.port())) {
      plain.command("SET", "{snugly}:dict:" + dictionary.id(), dictionary.bytes());
      plain.command("SET", "user:1", writer.encode(USER.getBytes(UTF_8)));
      StringRedisTemplate template = application.getBean(StringRedisTemplate.class);
      assertEquals(USER, template.opsForValue().get("user:1"));
      template.opsForValue().set("page", PAGE);
      assertEquals(Encoding.ZSTD, Applications.encodingAt(plain, "page"));
    }
  }

  private static ConfigurableApplicationContext run(String... properties) {
    return Applications.run(server, List.of(Applications.Bare.class), properties);
  }
}
