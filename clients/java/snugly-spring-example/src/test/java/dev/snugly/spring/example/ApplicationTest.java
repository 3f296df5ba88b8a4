package dev.snugly.spring.example;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Envelope;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Waiting;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** The application with a real server. */
@Tag("slow")
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

  @Test
  void asManyBytesAreToldWhenTheReportsComeFromTheCache() {
    try (Server server = Server.valkey();
        Connection plain = server.connect()) {
      String first = printed(server);
      assertTrue(first.startsWith("20 reports, 20 of them made: 10,274 bytes"), first);
      Waiting.until("all are stored", () -> plain.command("DBSIZE").equals(20L));
      assertEquals(first.replace("20 of them", "0 of them"), printed(server));
    }
  }

  private static String printed(Server server) {
    PrintStream console = System.out;
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    System.setOut(new PrintStream(printed, true, UTF_8));
    try {
      Application.main(
          new String[] {
            "--spring.data.redis.port=" + server.port(), "--spring.main.banner-mode=off"
          });
    } finally {
      System.setOut(console);
    }
    return printed
        .toString(UTF_8)
        .lines()
        .filter(line -> line.contains("reports"))
        .findFirst()
        .orElseThrow();
  }
}
