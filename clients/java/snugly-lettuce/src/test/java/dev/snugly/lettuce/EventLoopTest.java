package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.PAGE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.testing.Server;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.BlockingQueue;
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
    commands.set("large", LONG).get(20, TimeUnit.SECONDS);
    RedisFuture<String> large = commands.get("large");
    Runnable decoding = held.poll(20, TimeUnit.SECONDS);
    assertEquals("PONG", commands.ping().get(20, TimeUnit.SECONDS));
    commands.set("small", PAGE).get(20, TimeUnit.SECONDS);
    assertEquals(PAGE, commands.get("small").get(20, TimeUnit.SECONDS));
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
    commands.set("page", PAGE).get(20, TimeUnit.SECONDS);
    assertEquals(2, commands.mget("page", "page").get(20, TimeUnit.SECONDS).size());
    RedisFuture<?> three = commands.mget("page", "page", "page");
    held.poll(20, TimeUnit.SECONDS).run();
    assertTrue(three.isDone());
    connection.sync().multi();
    List.of("page", "page", "page").forEach(connection.sync()::get);
    RedisFuture<?> exec = commands.exec();
    held.poll(20, TimeUnit.SECONDS).run();
    assertTrue(exec.isDone());
  }

  @Test
  void valuesAreEncodedByTheCallerAndLargeOnesDecodedByThreadsOfTheirOwn() throws Exception {
    connect(settings());
    RedisAsyncCommands<String, String> commands = connection.async();
    commands.set("large", LONG).get(20, TimeUnit.SECONDS);
    assertEquals(Thread.currentThread().getName(), encodedOn.remove());
    assertEquals(LONG, commands.get("large").get(20, TimeUnit.SECONDS));
    assertEquals("snugly-decoding", decodedOn.remove());
    commands.set("small", PAGE).get(20, TimeUnit.SECONDS);
    assertEquals(PAGE, commands.get("small").get(20, TimeUnit.SECONDS));
    assertTrue(decodedOn.remove().startsWith("lettuce-"));
  }

  @Test
  void anExecutorThatIsShutDownFailsTheCommandAndNotTheConnection() throws Exception {
    ExecutorService ended = Executors.newSingleThreadExecutor();
    ended.shutdown();
    connect(settings().decodeExecutor(ended));
    RedisAsyncCommands<String, String> commands = connection.async();
    commands.set("large", LONG).get(20, TimeUnit.SECONDS);
    RedisFuture<String> large = commands.get("large");
    assertEquals("PONG", commands.ping().get(20, TimeUnit.SECONDS));
    assertTrue(large.toCompletableFuture().isCompletedExceptionally());
  }
}
