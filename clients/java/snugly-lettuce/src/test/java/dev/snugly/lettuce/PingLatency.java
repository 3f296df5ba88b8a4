package dev.snugly.lettuce;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.testing.Server;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Measures how long a PING takes beside a GET of 64 MiB on the same connection: without
 * compression, with a codec, which decodes on the event loop, and with a client. It is a program
 * and no test, since nothing about time can be asserted: {@code make bench-java-ping}.
 */
final class PingLatency {
  private static final int SIZE = 64 << 20;
  private static final int WARMING = 5;
  private static final int ROUNDS = 20;

  private PingLatency() {}

  /**
   * Prints a line for each way.
   *
   * @param arguments none
   * @throws Exception for whatever keeps it from measuring
   */
  public static void main(String[] arguments) throws Exception {
    CompressionConfiguration configuration = CompressionConfiguration.defaults();
    try (Server server = Server.valkey()) {
      String uri = "redis://127.0.0.1:" + server.port();
      measure("no compression", RedisClient.create(uri), ByteArrayCodec.INSTANCE);
      measure(
          "SnuglyCodec",
          RedisClient.create(uri),
          new SnuglyCodec<>(ByteArrayCodec.INSTANCE, configuration));
      measure(
          "SnuglyRedisClient",
          SnuglyRedisClient.create(uri, configuration),
          ByteArrayCodec.INSTANCE);
    }
  }

  private static void measure(String way, RedisClient client, RedisCodec<byte[], byte[]> codec)
      throws Exception {
    try (StatefulRedisConnection<byte[], byte[]> connection = client.connect(codec)) {
      RedisAsyncCommands<byte[], byte[]> commands = connection.async();
      byte[] key = "large".getBytes(UTF_8);
      commands.set(key, value()).get(60, TimeUnit.SECONDS);
      List<Double> slowest = new ArrayList<>();
      List<Double> gets = new ArrayList<>();
      for (int round = 0; round < WARMING + ROUNDS; round++) {
        long started = System.nanoTime();
        RedisFuture<byte[]> get = commands.get(key);
        double longest = 0;
        while (!get.isDone()) {
          long sent = System.nanoTime();
          commands.ping().get(60, TimeUnit.SECONDS);
          longest = Math.max(longest, (System.nanoTime() - sent) / 1e6);
        }
        get.get();
        if (round >= WARMING) {
          gets.add((System.nanoTime() - started) / 1e6);
          slowest.add(longest);
        }
      }
      System.out.printf(
          "%-18s GET %6.1f ms, slowest PING beside it %6.1f ms (medians of %d)%n",
          way, median(gets), median(slowest), ROUNDS);
    } finally {
      client.shutdown();
    }
  }

  private static double median(List<Double> figures) {
    Collections.sort(figures);
    return figures.get(figures.size() / 2);
  }

  private static byte[] value() {
    StringBuilder text = new StringBuilder(SIZE + 100);
    for (long number = 1; text.length() < SIZE; number++) {
      text.append("{\"id\": ").append(number * 7919 % 1000003).append(", \"name\": \"user-");
      text.append(number * 104729 % 99991).append("\"}\n");
    }
    text.setLength(SIZE);
    return text.toString().getBytes(UTF_8);
  }
}
