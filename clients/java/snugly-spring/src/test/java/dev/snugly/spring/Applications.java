package dev.snugly.spring;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Encoding;
import dev.snugly.core.Envelope;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Waiting;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.function.Executable;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** Applications of Spring Boot that tests run. */
final class Applications {
  /** One that has what Spring Boot configures, and nothing else. */
  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class Bare {}

  private Applications() {}

  /**
   * Runs one, to be closed.
   *
   * @param server where its data are
   * @param sources what it is made of
   * @param properties its settings
   */
  static ConfigurableApplicationContext run(
      Server server, List<Class<?>> sources, String... properties) {
    return new SpringApplicationBuilder(sources.toArray(new Class<?>[0]))
        .web(WebApplicationType.NONE)
        .bannerMode(Banner.Mode.OFF)
        .logStartupInfo(false)
        .properties("spring.data.redis.port=" + server.port())
        .properties(properties)
        .run();
  }

  /** The encoding of what is stored; caches write some time after they were asked to. */
  static Encoding encodingAt(Connection plain, String key) {
    Waiting.until(key + " is stored", () -> plain.bytes("GET", key) != null);
    return Envelope.inspect(plain.bytes("GET", key))
        .map(it -> it.encoding().orElseThrow())
        .orElse(Encoding.IDENTITY);
  }

  /**
   * Something fails.
   *
   * @param message a part of the message of its error, or of what caused that
   */
  static void assertFails(String message, Executable something) {
    Exception error = assertThrows(Exception.class, something);
    assertTrue(
        Stream.iterate((Throwable) error, each -> each != null, Throwable::getCause)
            .anyMatch(each -> String.valueOf(each.getMessage()).contains(message)),
        error::toString);
  }
}
