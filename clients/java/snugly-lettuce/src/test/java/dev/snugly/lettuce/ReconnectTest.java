package dev.snugly.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Server;
import io.lettuce.core.KeyValue;
import io.lettuce.core.api.sync.RedisCommands;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A connection that is lost in the middle of a reply, whose command Lettuce sends again. */
class ReconnectTest {
  private static final int SOME = 300;

  private final List<String> values = new ArrayList<>();
  private Server server;
  private Relay relay;
  private SnuglyRedisClient client;
  private RedisCommands<String, String> commands;

  @BeforeEach
  void start() {
    server = Server.valkey();
    relay = new Relay(server.port());
    client =
        SnuglyRedisClient.create(
            "redis://127.0.0.1:" + relay.port(),
            CompressionConfiguration.builder()
                .valueTypes(Set.of(ValueType.STRINGS, ValueType.LISTS))
                .build());
    commands = client.connect().sync();
    for (int number = 0; number < 20; number++) {
      values.add(number + Values.PAGE);
    }
  }

  @AfterEach
  void stop() {
    if (client != null) {
      client.shutdown();
      relay.close();
    }
    server.close();
  }

  @Test
  void aListThatWasCutComesOnce() {
    commands.rpush("list", values.toArray(String[]::new));
    relay.cutAfter(SOME);
    assertEquals(values, commands.lrange("list", 0, -1));
    assertTrue(relay.hasCut());
  }

  @Test
  void severalValuesThatWereCutComeOnceEach() {
    String[] keys = values.toArray(String[]::new);
    values.forEach(value -> commands.set(value, value));
    relay.cutAfter(SOME);
    List<String> read = commands.mget(keys).stream().map(KeyValue::getValue).toList();
    assertEquals(values, read);
    assertTrue(relay.hasCut());
  }
}
