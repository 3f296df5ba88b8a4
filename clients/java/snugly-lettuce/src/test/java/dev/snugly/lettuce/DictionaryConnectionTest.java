package dev.snugly.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.snugly.testing.Waiting;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A connection to a server that takes connections and never answers, or is gone. */
class DictionaryConnectionTest {
  private static final int ASKING = 32;

  private final AtomicInteger attempts = new AtomicInteger();
  private ServerSocket silent;
  private RedisClient client;
  private DictionaryConnection connection;

  @BeforeEach
  void listen() throws IOException {
    silent = new ServerSocket(0, ASKING, InetAddress.getLoopbackAddress());
    client = RedisClient.create(RedisURI.create("127.0.0.1", silent.getLocalPort()));
    connection = new DictionaryConnection(this::open);
  }

  private DictionaryConnection.Opened open() {
    attempts.incrementAndGet();
    StatefulRedisConnection<byte[], byte[]> opened = client.connect(DictionaryConnection.PLAIN);
    return new DictionaryConnection.Opened(opened, opened.async());
  }

  @AfterEach
  void close() throws IOException {
    client.shutdown();
    silent.close();
  }

  private String ask() {
    return connection.ask(opened -> opened.commands().ping().toCompletableFuture().join());
  }

  @Test
  void allWhoAskMeanwhileWaitForOneAttemptAndTheNextMakesAnother() throws Exception {
    List<FutureTask<String>> questions =
        Stream.generate(() -> new FutureTask<>(this::ask)).limit(ASKING).toList();
    List<Thread> threads = questions.stream().map(Thread::new).toList();
    threads.forEach(Thread::start);
    Waiting.until("all wait", () -> threads.stream().allMatch(DictionaryConnectionTest::isWaiting));
    silent.accept().close();
    for (FutureTask<String> question : questions) {
      ExecutionException failed =
          assertThrows(ExecutionException.class, () -> question.get(60, TimeUnit.SECONDS));
      assertInstanceOf(RedisException.class, failed.getCause());
    }
    assertEquals(1, attempts.get());
    silent.close();
    assertThrows(RedisException.class, this::ask);
    assertEquals(2, attempts.get());
  }

  private static boolean isWaiting(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || thread.getState() == Thread.State.TIMED_WAITING;
  }

  @Test
  void whoIsInterruptedWaitsNoLongerAndTheOthersDo() throws Exception {
    FutureTask<String> first = new FutureTask<>(this::ask);
    new Thread(first).start();
    Waiting.until("it is being opened", () -> attempts.get() == 1);
    FutureTask<String> second = new FutureTask<>(this::ask);
    Thread waiting = new Thread(second);
    waiting.start();
    waiting.interrupt();
    assertThrows(ExecutionException.class, () -> second.get(60, TimeUnit.SECONDS));
    assertEquals(1, attempts.get());
    silent.accept().close();
    assertThrows(ExecutionException.class, () -> first.get(60, TimeUnit.SECONDS));
  }
}
