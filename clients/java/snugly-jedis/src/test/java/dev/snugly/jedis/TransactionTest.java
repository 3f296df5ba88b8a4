package dev.snugly.jedis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.exceptions.JedisDataException;

/** Transactions in which a command is refused: as at a server, none of it is run. */
class TransactionTest {
  private static final String PAGE = "<p>hello</p>".repeat(100);

  private static Server server;

  private SnuglyRedisClient cache;
  private Connection plain;

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

  @BeforeEach
  void connect() {
    plain = server.connect();
    plain.command("FLUSHALL");
    cache =
        SnuglyRedisClient.builder(CompressionConfiguration.defaults())
            .hostAndPort("127.0.0.1", server.port())
            .build();
  }

  @AfterEach
  void close() {
    cache.close();
    plain.close();
  }

  @Test
  void aTransactionWithARefusedCommandIsDiscarded() {
    try (AbstractTransaction transaction = cache.multi()) {
      transaction.set("page", PAGE);
      assertThrows(CommandRefusedException.class, () -> transaction.append("page", "more"));
      transaction.set("other", PAGE);
      JedisDataException error = assertThrows(JedisDataException.class, transaction::exec);
      assertTrue(error.getMessage().startsWith("EXECABORT"), error.getMessage());
      assertTrue(error.getMessage().contains("APPEND"), error.getMessage());
      assertInstanceOf(CommandRefusedException.class, error.getCause());
    }
    assertEquals(0L, plain.command("DBSIZE"));
    assertNull(cache.get("page"));
  }

  @Test
  void theNextTransactionOfTheSameConnectionIsRun() {
    try (AbstractTransaction transaction = cache.transaction(false)) {
      transaction.multi();
      assertThrows(CommandRefusedException.class, () -> transaction.append("page", "more"));
      assertThrows(JedisDataException.class, transaction::exec);
      transaction.multi();
      assertThrows(CommandRefusedException.class, () -> transaction.append("page", "more"));
      assertEquals("OK", transaction.discard());
      transaction.multi();
      transaction.set("page", PAGE);
      assertEquals(List.of("OK"), transaction.exec());
    }
    assertEquals(PAGE, cache.get("page"));
  }

  @Test
  void whatIsRefusedBeforeMultiDoesNotCount() {
    try (AbstractTransaction transaction = cache.transaction(false)) {
      transaction.watch("page");
      assertThrows(CommandRefusedException.class, () -> transaction.append("page", "more"));
      transaction.multi();
      transaction.set("page", PAGE);
      assertEquals(List.of("OK"), transaction.exec());
    }
  }

  @Test
  void aTransactionThatIsClosedAfterARefusalLeavesTheConnectionAsItWas() {
    try (AbstractTransaction transaction = cache.multi()) {
      transaction.set("page", PAGE);
      assertThrows(CommandRefusedException.class, () -> transaction.append("page", "more"));
    }
    assertNull(cache.get("page"));
    assertEquals(1, cache.getPool().getNumIdle());
  }
}
