package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.DAMAGED;
import static dev.snugly.lettuce.Values.PAGE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.UndecodableException;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Waiting;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.reactive.RedisReactiveCommands;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;

/** Reactive commands on a real valkey-server. */
class ReactiveTest {
  private static Server server;

  private SnuglyRedisClient client;
  private Connection plain;
  private RedisReactiveCommands<String, String> commands;

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
    client =
        SnuglyRedisClient.create(
            RedisURI.create("127.0.0.1", server.port()),
            LettuceCompression.of(CompressionConfiguration.defaults()));
    commands = client.connect().reactive();
  }

  @AfterEach
  void close() {
    client.shutdown();
    plain.close();
  }

  @Test
  void valuesComeBackAsTheyWereAndNothingIsSentBeforeSomebodySubscribes() {
    commands.set("page", PAGE);
    assertEquals(0L, plain.command("EXISTS", "page"));
    assertEquals("OK", commands.set("page", PAGE).block());
    assertEquals(PAGE, commands.get("page").block());
    assertTrue(commands.get("none").blockOptional().isEmpty());
  }

  @Test
  void aSubscriberGetsAsManyValuesAsItAsksFor() {
    String[] keys = new String[500];
    Map<String, String> values = new HashMap<>();
    for (int index = 0; index < keys.length; index++) {
      keys[index] = "key" + index;
      values.put(keys[index], index + PAGE);
    }
    commands.mset(values).block();
    BlockingQueue<KeyValue<String, String>> got = new LinkedBlockingQueue<>();
    BaseSubscriber<KeyValue<String, String>> subscriber =
        new BaseSubscriber<>() {
          @Override
          protected void hookOnSubscribe(Subscription subscription) {
            subscription.request(3);
          }

          @Override
          protected void hookOnNext(KeyValue<String, String> value) {
            got.add(value);
          }
        };
    commands.mget(keys).subscribe(subscriber);
    Waiting.until("three values are here", () -> got.size() == 3);
    assertEquals("PONG", commands.ping().block());
    assertEquals(3, got.size());
    subscriber.request(4);
    Waiting.until("seven values are here", () -> got.size() == 7);
    subscriber.cancel();
    assertEquals(
        List.of(0, 1, 2, 3, 4, 5, 6).stream()
            .map(index -> KeyValue.just("key" + index, index + PAGE))
            .toList(),
        List.copyOf(got));
    assertEquals("1" + PAGE, commands.get("key1").block());
  }

  @Test
  void oneThatFailsDoesNotDisturbTheOthers() {
    plain.command("SET", "damaged", DAMAGED);
    commands.set("page", PAGE).block();
    List<String> got =
        Flux.range(0, 300)
            .flatMap(
                each ->
                    commands
                        .get(each % 3 == 0 ? "damaged" : "page")
                        .onErrorReturn(UndecodableException.class, "error"),
                64)
            .collectList()
            .block();
    assertEquals(100, got.stream().filter("error"::equals).count());
    assertEquals(200, got.stream().filter(PAGE::equals).count());
    assertThrows(UndecodableException.class, () -> commands.get("damaged").block());
  }
}
