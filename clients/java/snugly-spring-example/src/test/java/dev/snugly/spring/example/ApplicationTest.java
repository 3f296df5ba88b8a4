package dev.snugly.spring.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Envelope;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Waiting;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** The application with a real server. */
class ApplicationTest {
  @Test
  void reportsComeFromTheCacheWhereTheyAreCompressed() {
    try (Server server = Server.valkey();
        Connection plain = server.connect();
        ConfigurableApplicationContext application =
            SpringApplication.run(Application.class, "--spring.data.redis.port=" + server.port())) {
      Waiting.until("all are stored", () -> plain.command("DBSIZE").equals(20L));
      byte[] stored = plain.bytes("GET", "reports::2001");
      assertTrue(Envelope.inspect(stored).isPresent());
      Reports reports = application.getBean(Reports.class);
      String report = reports.ofYear(2001);
      assertTrue(report.length() > 2 * stored.length, report);
      assertEquals(20, reports.made());
      plain.command("DEL", "reports::2001");
      assertEquals(report, reports.ofYear(2001));
      assertEquals(21, reports.made());
    }
  }
}
