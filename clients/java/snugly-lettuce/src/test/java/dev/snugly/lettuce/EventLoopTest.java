package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.PAGE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.testing.Connection;
import dev.snugly.testing.GzipFile;
import dev.snugly.testing.Server;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Which threads encode and decode. */
class EventLoopTest {
  private static final String LONG = PAGE.repeat(1000);

  private static Server server;

  /** Holds each reply that is to be decoded elsewhere until the test lets it go. */
  private final BlockingQueue<Runnable> held = new LinkedBlockingQueue<>();

  private final BlockingQueue<String> decodedOn = new LinkedBlockingQueue<>();
  private final BlockingQueue<String> encodedOn = new LinkedBlockingQueue<>();
  private SnuglyRedisClient client;
  private StatefulRedisConnection<String, String> connection;

  /** Notes the threads that make values of bytes, and bytes of values. */
  private final RedisCodec<String, String> noting =
      RedisCodec.of(
          StringCodec.UTF8,
          new RedisCodec<String, String>() {
            @Override
            public String decodeKey(ByteBuffer bytes) {
              return StringCodec.UTF8.decodeKey(bytes);
            }

            @Override
            public String decodeValue(ByteBuffer bytes) {
              decodedOn.add(Thread.currentThread().getName());
              return StringCodec.UTF8.decodeValue(bytes);
            }

            @Override
            public ByteBuffer encodeKey(String key) {
              return StringCodec.UTF8.encodeKey(key);
            }

            @Override
            public ByteBuffer encodeValue(String value) {
              encodedOn.add(Thread.currentThread().getName());
              return StringCodec.UTF8.encodeValue(value);
            }
          });

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

  private void connect(LettuceCompression.Builder compression) {
    client =
        SnuglyRedisClient.create(RedisURI.create("127.0.0.1", server.port()), compression.build());
    connection = client.connect(noting);
  }

  private static LettuceCompression.Builder settings() {
    return LettuceCompression.builder(CompressionConfiguration.defaults());
  }

  private static LettuceCompression.Builder readingGzip() {
    return LettuceCompression.builder(CompressionConfiguration.builder().readGzip(true).build());
  }

  @BeforeEach
  void clear() {
    held.clear();
  }

  @AfterEach
  void close() {
    client.shutdown();
  }

  @Test
  void othersGetTheirRepliesWhileALargeValueWaitsToBeDecoded() throws Exception {
    connect(settings().decodeExecutor(held::add));
    RedisAsyncCommands<String, String> commands = connection.async();
    commands.set("large", LONG).get(60, TimeUnit.SECONDS);
    RedisFuture<String> large = commands.get("large");
    Runnable decoding = held.poll(60, TimeUnit.SECONDS);
    assertEquals("PONG", commands.ping().get(60, TimeUnit.SECONDS));
    commands.set("small", PAGE).get(60, TimeUnit.SECONDS);
    assertEquals(PAGE, commands.get("small").get(60, TimeUnit.SECONDS));
    assertFalse(large.isDone());
    decoding.run();
    assertTrue(large.isDone());
    assertEquals(LONG, large.get());
    assertTrue(held.isEmpty());
  }

  @Test
  void aReplyOfManyValuesAndATransactionAreWeighedAsAWhole() throws Exception {
    connect(settings().decodeExecutor(held::add).eventLoopBytes(2 * PAGE.length()));
    RedisAsyncCommands<String, String> commands = connection.async();
    commands.set("page", PAGE).get(60, TimeUnit.SECONDS);
    assertEquals(2, commands.mget("page", "page").get(60, TimeUnit.SECONDS).size());
    RedisFuture<?> three = commands.mget("page", "page", "page");
    held.poll(60, TimeUnit.SECONDS).run();
    assertTrue(three.isDone());
    connection.sync().multi();
    List.of("page", "page", "page").forEach(connection.sync()::get);
    RedisFuture<?> exec = commands.exec();
    held.poll(60, TimeUnit.SECONDS).run();
    assertTrue(exec.isDone());
  }

  @Test
  void anErrorOnAnotherThreadEndsItsCommand() throws Exception {
    connect(settings());
    connection.sync().set("large", LONG);
    RedisCodec<String, String> broken =
        RedisCodec.of(
            StringCodec.UTF8,
            new StringCodec() {
              @Override
              public String decodeValue(ByteBuffer bytes) {
                throw new UnsatisfiedLinkError("no such library");
              }
            });
    RedisFuture<String> large = client.connect(broken).async().get("large");
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> large.get(60, TimeUnit.SECONDS));
    assertInstanceOf(UnsatisfiedLinkError.class, failed.getCause());
  }

  @Test
  void aCommandWhoseReplyNobodyWantsEndsWhenItIsSent() throws Exception {
    connect(readingGzip());
    AsyncCommand<String, String, Void> silence =
        new AsyncCommand<>(
            new Command<>(
                CommandType.CLIENT, null, new CommandArgs<>(noting).add("REPLY").add("OFF")));
    connection.dispatch(silence);
    assertNull(silence.get(60, TimeUnit.SECONDS));
  }

  @Test
  void noValueMakesAReplyShorterByWhatItClaims() throws Exception {
    connect(settings().decodeExecutor(held::add));
    try (Connection plain = server.connect()) {
      plain.command("SET", "claiming", claiming(Long.MIN_VALUE));
    }
    RedisAsyncCommands<String, String> commands = connection.async();
    commands.set("large", LONG).get(60, TimeUnit.SECONDS);
    RedisFuture<?> both = commands.mget("large", "claiming");
    Runnable decoding = held.poll(60, TimeUnit.SECONDS);
    assertNotNull(decoding);
    assertFalse(both.isDone());
    decoding.run();
    assertThrows(ExecutionException.class, () -> both.get(60, TimeUnit.SECONDS));
  }

  /** The start of an envelope of a zstd frame of this many bytes, unsigned. */
  private static byte[] claiming(long size) {
    byte[] header = {0, 1, 2, 0, 1, 0x28, (byte) 0xB5, 0x2F, (byte) 0xFD, (byte) 0xC0, 0x58};
    return ByteBuffer.allocate(header.length + Long.BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(header)
        .putLong(size)
        .array();
  }

  @Test
  void whatSaysNoLengthIsNeverDecodedOnTheEventLoop() throws Exception {
    connect(readingGzip().decodeExecutor(held::add).eventLoopBytes(Integer.MAX_VALUE));
    try (Connection plain = server.connect()) {
      plain.command("SET", "file", GzipFile.of(PAGE));
    }
    RedisFuture<String> get = connection.async().get("file");
    Runnable decoding = held.poll(60, TimeUnit.SECONDS);
    assertNotNull(decoding);
    decoding.run();
    assertEquals(PAGE, get.get(60, TimeUnit.SECONDS));
  }

  @Test
  void aGzipFileIsNeverExpandedOnTheEventLoopWhateverItsTrailerSays() throws Exception {
    connect(readingGzip().decodeExecutor(held::add));
    try (Connection plain = server.connect()) {
      plain.command("SET", "file", GzipFile.of(LONG, "x"));
    }
    RedisFuture<String> get = connection.async().get("file");
    assertEquals("PONG", connection.async().ping().get(60, TimeUnit.SECONDS));
    assertFalse(get.isDone());
    held.poll(60, TimeUnit.SECONDS).run();
    assertEquals(LONG + "x", get.get(60, TimeUnit.SECONDS));
  }

  @Test
  void valuesAreEncodedByTheCallerAndLargeOnesDecodedByThreadsOfTheirOwn() throws Exception {
    connect(settings());
    RedisAsyncCommands<String, String> commands = connection.async();
    commands.set("large", LONG).get(60, TimeUnit.SECONDS);
    assertEquals(Thread.currentThread().getName(), encodedOn.remove());
    assertEquals(LONG, commands.get("large").get(60, TimeUnit.SECONDS));
    assertEquals("snugly-decoding", decodedOn.remove());
    commands.set("small", PAGE).get(60, TimeUnit.SECONDS);
    assertEquals(PAGE, commands.get("small").get(60, TimeUnit.SECONDS));
    assertTrue(decodedOn.remove().startsWith("lettuce-"));
  }

  @Test
  void aClientWhoseDecodingThreadsAreAllHeldHoldsUpNoOther() throws Exception {
    connect(settings());
    connection.sync().set("large", LONG);
    CountDownLatch released = new CountDownLatch(1);
    SnuglyRedisClient other =
        SnuglyRedisClient.create(RedisURI.create("127.0.0.1", server.port()), settings().build());
    try {
      RedisAsyncCommands<String, String> holding = other.connect(holding(released)).async();
      List<RedisFuture<String>> held = new ArrayList<>();
      for (int thread = 0; thread < Runtime.getRuntime().availableProcessors(); thread++) {
        held.add(holding.get("large"));
      }
      for (RedisFuture<String> each : held) {
        assertEquals("holding", decodedOn.poll(60, TimeUnit.SECONDS));
        assertFalse(each.isDone());
      }
      assertEquals(LONG, connection.async().get("large").get(60, TimeUnit.SECONDS));
      released.countDown();
      for (RedisFuture<String> each : held) {
        assertEquals(LONG, each.get(60, TimeUnit.SECONDS));
      }
    } finally {
      released.countDown();
      other.shutdown();
    }
  }

  /** Holds each thread that makes a value of bytes. */
  private RedisCodec<String, String> holding(CountDownLatch released) {
    return RedisCodec.of(
        StringCodec.UTF8,
        new StringCodec() {
          @Override
          public String decodeValue(ByteBuffer bytes) {
            decodedOn.add("holding");
            try {
              released.await();
            } catch (InterruptedException error) {
              Thread.currentThread().interrupt();
            }
            return super.decodeValue(bytes);
          }
        });
  }

  @Test
  void anExecutorThatIsShutDownFailsTheCommandAndNotTheConnection() throws Exception {
    ExecutorService ended = Executors.newSingleThreadExecutor();
    ended.shutdown();
    connect(settings().decodeExecutor(ended));
    RedisAsyncCommands<String, String> commands = connection.async();
    commands.set("large", LONG).get(60, TimeUnit.SECONDS);
    RedisFuture<String> large = commands.get("large");
    assertEquals("PONG", commands.ping().get(60, TimeUnit.SECONDS));
    assertTrue(large.toCompletableFuture().isCompletedExceptionally());
  }
}
