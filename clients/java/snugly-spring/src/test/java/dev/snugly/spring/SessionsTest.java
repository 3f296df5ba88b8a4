package dev.snugly.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Envelope;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.session.Session;
import org.springframework.session.SessionRepository;
import org.springframework.session.data.redis.RedisIndexedSessionRepository;
import org.springframework.session.data.redis.RedisSessionRepository;

/** Spring Session over connections that compress. */
class SessionsTest {
  private static final String BASKET = "a book of some length; ".repeat(40);

  private static Server server;

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
  void sessionsAreHashesThatCompress() {
    try (Connection plain = server.connect();
        ConfigurableApplicationContext application = run()) {
      RedisSessionRepository sessions = new RedisSessionRepository(template(application));
      String id = save(sessions);
      byte[] stored = plain.bytes("HGET", "spring:session:sessions:" + id, "sessionAttr:basket");
      assertTrue(Envelope.inspect(stored).isPresent());
      Session found = sessions.findById(id);
      assertEquals(BASKET, found.getAttribute("basket"));
      sessions.deleteById(id);
      assertNull(sessions.findById(id));
    }
  }

  @Test
  void sessionsWithIndexesAreRefused() {
    try (ConfigurableApplicationContext application = run()) {
      RedisIndexedSessionRepository sessions =
          new RedisIndexedSessionRepository(template(application));
      Applications.assertFails("APPEND", () -> save(sessions));
    }
  }

  private static <S extends Session> String save(SessionRepository<S> sessions) {
    S session = sessions.createSession();
    session.setAttribute("basket", BASKET);
    sessions.save(session);
    return session.getId();
  }

  private static RedisTemplate<String, Object> template(
      ConfigurableApplicationContext application) {
    RedisTemplate<String, Object> template = new RedisTemplate<>();
    template.setConnectionFactory(application.getBean(RedisConnectionFactory.class));
    template.setKeySerializer(RedisSerializer.string());
    template.setHashKeySerializer(RedisSerializer.string());
    template.afterPropertiesSet();
    return template;
  }

  private static ConfigurableApplicationContext run() {
    return Applications.run(
        server,
        List.of(Applications.Bare.class),
        "snugly.connections=true",
        "snugly.value-types=strings,hashes");
  }
}
