package dev.snugly.benchmark.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.client.Client;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.client.Endpoint;
import dev.snugly.benchmark.data.Corpus;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class LoadTest {
  private static final int TASKS = 4;
  private static final Duration LONG = Duration.ofMinutes(1);

  private static Server server;
  private static Client client;

  @BeforeAll
  static void start() throws Exception {
    server = Server.valkey();
    client =
        ClientKind.JEDIS.open(
            new Endpoint("127.0.0.1", server.port(), false, null, false, TASKS), Backend.ZSTD);
  }

  @AfterAll
  static void end() {
    if (client != null) {
      client.close();
    }
    if (server != null) {
      server.close();
    }
  }

  private static Keyspace filled() throws Exception {
    Keyspace keys = new Keyspace(ClientKind.JEDIS, Corpus.of(Corpus.JSON, 100), 50);
    for (int number = 0; number < keys.count(); number++) {
      client.set(keys.key(number), keys.value(number));
    }
    return keys;
  }

  private static Sample ask(Keyspace keys, Duration most, long operations) throws Exception {
    return new Load(List.of(client, client), keys, TASKS).run(most, operations);
  }

  @Test
  void asManyOperationsAreAnsweredAsWereAskedForInTheSharesOfGlidesBenchmark() throws Exception {
    Sample sample = ask(filled(), LONG, 10_000);
    long sets = sample.latencies().get(Operation.SET).count();
    long existing = sample.latencies().get(Operation.GET_EXISTING).count();
    long missing = sample.latencies().get(Operation.GET_MISSING).count();
    assertEquals(10_000, sets + existing + missing);
    assertEquals(0.2, sets / 10_000.0, 0.03);
    assertEquals(0.64, existing / 10_000.0, 0.03);
    assertEquals(0.16, missing / 10_000.0, 0.03);
    assertEquals(10_000, sample.tps() * sample.seconds(), 0.01);
  }

  @Test
  void itEndsWhenTheTimeIsOver() throws Exception {
    // Long enough for a busy machine to start the tasks.
    Sample sample = ask(filled(), Duration.ofSeconds(2), Long.MAX_VALUE);
    assertTrue(sample.seconds() >= 2);
    assertTrue(sample.tps() > 0);
  }

  @Test
  void aValueThatIsAnotherFailsTheMeasurement() throws Exception {
    Keyspace keys = filled();
    try (Connection connection = server.connect()) {
      connection.command("SET", keys.missing(3), "nobody has written this");
      WrongValueException error =
          assertThrows(WrongValueException.class, () -> ask(keys, LONG, Long.MAX_VALUE));
      assertTrue(error.getMessage().contains(keys.missing(3)), error.getMessage());
      connection.command("DEL", keys.missing(3));
    }
  }

  @Test
  void anErrorOfTheServerFailsTheMeasurement() throws Exception {
    Keyspace keys = filled();
    try (Connection connection = server.connect()) {
      connection.command("RPUSH", keys.missing(3), "a list");
      Exception error = assertThrows(Exception.class, () -> ask(keys, LONG, Long.MAX_VALUE));
      assertTrue(error.getMessage().contains("WRONGTYPE"), error.getMessage());
      connection.command("DEL", keys.missing(3));
    }
  }

  @Test
  void anErrorOfTheJvmInOneTaskFailsTheMeasurementWhateverTheOthersDo() throws Exception {
    AtomicBoolean thrown = new AtomicBoolean();
    Keyspace keys = filled();
    Load load = new Load(List.of(new Failing(client, thrown)), keys, TASKS);
    Exception error = assertThrows(ExecutionException.class, () -> load.run(LONG, 10_000));
    assertInstanceOf(StackOverflowError.class, error.getCause());
  }

  /** A real client, the first GET of which ends with an error of the JVM. */
  private record Failing(Client client, AtomicBoolean thrown) implements Client {
    @Override
    public void set(String key, String value) throws Exception {
      client.set(key, value);
    }

    @Override
    public String get(String key) throws Exception {
      if (thrown.compareAndSet(false, true)) {
        throw new StackOverflowError("on purpose");
      }
      return client.get(key);
    }

    @Override
    public void close() {
      client.close();
    }
  }
}
