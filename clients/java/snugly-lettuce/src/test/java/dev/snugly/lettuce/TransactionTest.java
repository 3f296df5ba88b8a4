package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.DAMAGED;
import static dev.snugly.lettuce.Values.OTHER;
import static dev.snugly.lettuce.Values.PAGE;
import static dev.snugly.lettuce.Values.encodingAt;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Encoding;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.reactive.RedisReactiveCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.KeyValueListOutput;
import io.lettuce.core.output.MultiOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.RedisCommand;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** MULTI and EXEC on a real valkey-server. */
class TransactionTest {
  private static final String LONG = PAGE.repeat(100);

  private static Server server;

  private SnuglyRedisClient client;
  private Connection plain;
  private StatefulRedisConnection<String, String> connection;

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
    client =
        SnuglyRedisClient.create(
            RedisURI.create("127.0.0.1", server.port()),
            LettuceCompression.of(
                CompressionConfiguration.builder()
                    .valueTypes(Set.of(ValueType.STRINGS, ValueType.HASHES))
                    .build()));
    connection = client.connect();
  }

  @AfterEach
  void close() {
    client.shutdown();
    plain.close();
  }

  @Test
  void repliesOfATransactionAreRestoredEachAsThatOfItsCommand() {
    RedisCommands<String, String> commands = connection.sync();
    commands.set("before", OTHER);
    commands.multi();
    commands.set("page", PAGE);
    commands.get("page");
    commands.mget("before", "none", "page");
    commands.incr("number");
    commands.hset("hash", Map.of("field", PAGE));
    commands.hgetall("hash");
    commands.get("hash");
    commands.ping();
    List<Object> replies = commands.exec().stream().collect(Collectors.toList());
    assertEquals("OK", replies.get(0));
    assertEquals(PAGE, replies.get(1));
    assertEquals(
        List.of(
            KeyValue.just("before", OTHER), KeyValue.empty("none"), KeyValue.just("page", PAGE)),
        replies.get(2));
    assertEquals(1L, replies.get(3));
    assertEquals(1L, replies.get(4));
    assertEquals(Map.of("field", PAGE), replies.get(5));
    assertInstanceOf(RedisCommandExecutionException.class, replies.get(6));
    assertEquals("PONG", replies.get(7));
    assertEquals(Encoding.ZSTD, encodingAt(plain, "page"));
    assertEquals(PAGE, commands.get("page"));
  }

  @Test
  void futuresOfATransactionEndWithIt() throws Exception {
    connection.sync().multi();
    RedisAsyncCommands<String, String> commands = connection.async();
    RedisFuture<String> set = commands.set("page", LONG);
    RedisFuture<String> get = commands.get("page");
    RedisFuture<TransactionResult> exec = commands.exec();
    assertEquals(LONG, exec.get(60, TimeUnit.SECONDS).get(1));
    assertEquals("OK", set.get(60, TimeUnit.SECONDS));
    assertEquals(LONG, get.get(60, TimeUnit.SECONDS));
  }

  @Test
  void reactiveTransactionsAreRestored() {
    RedisReactiveCommands<String, String> commands = connection.reactive();
    TransactionResult result =
        commands
            .multi()
            .doOnSuccess(
                started -> {
                  commands.set("page", PAGE).subscribe();
                  commands.get("page").subscribe();
                })
            .then(commands.exec())
            .block();
    assertEquals(PAGE, result.get(1));
  }

  @Test
  void aValueThatCannotBeReadIsAnErrorInItsPlace() throws Exception {
    plain.command("SET", "damaged", DAMAGED);
    connection.sync().multi();
    RedisAsyncCommands<String, String> commands = connection.async();
    RedisFuture<String> damaged = commands.get("damaged");
    RedisFuture<String> set = commands.set("page", PAGE);
    RedisFuture<String> get = commands.get("page");
    TransactionResult result = commands.exec().get(60, TimeUnit.SECONDS);
    RedisCommandExecutionException error =
        assertInstanceOf(RedisCommandExecutionException.class, result.get(0));
    assertTrue(error.getMessage().contains("at key \"damaged\""), error.getMessage());
    assertEquals(PAGE, result.get(2));
    assertEquals("OK", set.get());
    assertEquals(PAGE, get.get());
    assertThrows(ExecutionException.class, damaged::get);
  }

  @Test
  void nothingOfATransactionRunsIfACommandInItIsRefused() {
    RedisCommands<String, String> commands = connection.sync();
    commands.multi();
    commands.set("page", PAGE);
    assertThrows(CommandRefusedException.class, () -> commands.append("page", "more"));
    RedisCommandExecutionException error =
        assertThrows(RedisCommandExecutionException.class, commands::exec);
    assertTrue(error.getMessage().startsWith("EXECABORT"), error.getMessage());
    assertEquals(0L, plain.command("EXISTS", "page"));
    commands.multi();
    commands.set("page", PAGE);
    commands.get("page");
    assertEquals(PAGE, commands.exec().get(1));
  }

  @Test
  void nothingOfATransactionRunsIfItsEndIsDispatchedInABatchAfterARefusal() throws Exception {
    RedisCommands<String, String> commands = connection.sync();
    commands.multi();
    commands.set("page", PAGE);
    assertThrows(CommandRefusedException.class, () -> commands.append("page", "more"));
    AsyncCommand<String, String, TransactionResult> exec =
        command(CommandType.EXEC, new MultiOutput<>(StringCodec.UTF8));
    AsyncCommand<String, String, String> after =
        command(CommandType.SET, new StatusOutput<>(StringCodec.UTF8), "other", PAGE);
    connection.dispatch(List.of(exec, after));
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> exec.get(60, TimeUnit.SECONDS));
    assertTrue(failed.getCause().getMessage().startsWith("EXECABORT"), failed.toString());
    assertEquals("OK", after.get(60, TimeUnit.SECONDS));
    assertEquals(0L, plain.command("EXISTS", "page"));
    assertEquals(PAGE, commands.get("other"));
  }

  @Test
  void futuresAndPublishersOfATransactionInWhichACommandWasRefusedEndWithTheReason() {
    connection.sync().multi();
    RedisAsyncCommands<String, String> async = connection.async();
    assertThrows(CommandRefusedException.class, () -> async.append("page", "more"));
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> async.exec().get(60, TimeUnit.SECONDS));
    assertTrue(failed.getCause().getMessage().contains("APPEND is refused"), failed.toString());
    assertFalse(connection.isMulti());
    RedisReactiveCommands<String, String> reactive = connection.reactive();
    reactive.multi().block();
    assertThrows(CommandRefusedException.class, () -> reactive.append("page", "more").block());
    Mono<TransactionResult> exec = reactive.exec();
    RedisCommandExecutionException error =
        assertThrows(RedisCommandExecutionException.class, exec::block);
    assertTrue(error.getMessage().startsWith("EXECABORT"), error.getMessage());
    assertFalse(connection.isMulti());
  }

  @Test
  void nothingOfABatchIsSentIfACommandInItIsRefused() {
    List<RedisCommand<String, String, ?>> batch =
        List.of(
            command(CommandType.MULTI, new StatusOutput<>(StringCodec.UTF8)),
            command(CommandType.SET, new StatusOutput<>(StringCodec.UTF8), "page", PAGE),
            command(CommandType.APPEND, new IntegerOutput<>(StringCodec.UTF8), "page", "more"),
            command(CommandType.EXEC, new MultiOutput<>(StringCodec.UTF8)));
    assertThrows(CommandRefusedException.class, () -> connection.dispatch(batch));
    assertFalse(connection.isMulti());
    assertEquals(0L, plain.command("EXISTS", "page"));
    RedisCommands<String, String> commands = connection.sync();
    commands.multi();
    commands.set("page", PAGE);
    assertEquals("OK", commands.exec().get(0));
  }

  @Test
  void aTransactionThatIsDiscardedLeavesNothingBehind() {
    RedisCommands<String, String> commands = connection.sync();
    commands.multi();
    commands.set("page", PAGE);
    assertThrows(CommandRefusedException.class, () -> commands.strlen("page"));
    commands.discard();
    commands.multi();
    commands.get("page");
    assertEquals(1, commands.exec().size());
  }

  @Test
  void whatATransactionIsRestoredToIsBounded() throws Exception {
    String page = "a".repeat(10_000);
    client.shutdown();
    client =
        SnuglyRedisClient.create(
            "redis://127.0.0.1:" + server.port(),
            CompressionConfiguration.builder().maxReplyBytes(25_000).build());
    connection = client.connect();
    RedisCommands<String, String> commands = connection.sync();
    commands.mset(Map.of("1", page, "2", page, "3", page));
    for (int round = 0; round < 2; round++) {
      commands.multi();
      commands.get("1");
      commands.mget("2");
      commands.get("3");
      hasTooLargeAThird(commands.exec(), page);
    }
    AsyncCommand<String, String, TransactionResult> exec =
        command(CommandType.EXEC, new MultiOutput<>(StringCodec.UTF8));
    AsyncCommand<String, String, String> after =
        command(CommandType.GET, new ValueOutput<>(StringCodec.UTF8), "3");
    connection.dispatch(
        List.of(
            command(CommandType.MULTI, new StatusOutput<>(StringCodec.UTF8)),
            command(CommandType.GET, new ValueOutput<>(StringCodec.UTF8), "1"),
            command(
                CommandType.MGET, new KeyValueListOutput<>(StringCodec.UTF8, List.of("2")), "2"),
            command(CommandType.GET, new ValueOutput<>(StringCodec.UTF8), "3"),
            exec,
            after));
    hasTooLargeAThird(exec.get(60, TimeUnit.SECONDS), page);
    assertEquals(page, after.get(60, TimeUnit.SECONDS));
  }

  private static void hasTooLargeAThird(TransactionResult result, String page) {
    assertEquals(page, result.get(0));
    assertEquals(List.of(KeyValue.just("2", page)), result.get(1));
    RedisCommandExecutionException error =
        assertInstanceOf(RedisCommandExecutionException.class, result.get(2));
    assertTrue(error.getMessage().contains("maxReplyBytes"), error.getMessage());
  }

  @Test
  void aTransactionWhoseKeysHaveChangedIsDiscardedByTheServer() {
    RedisCommands<String, String> commands = connection.sync();
    commands.watch("page");
    commands.multi();
    commands.get("page");
    plain.command("SET", "page", "changed");
    assertTrue(commands.exec().wasDiscarded());
    assertFalse(connection.isMulti());
  }

  @Test
  void aTransactionThatIsDispatchedAsOneBatchIsRestored() throws Exception {
    AsyncCommand<String, String, TransactionResult> exec =
        command(CommandType.EXEC, new MultiOutput<>(StringCodec.UTF8));
    connection.dispatch(
        List.of(
            command(CommandType.MULTI, new StatusOutput<>(StringCodec.UTF8)),
            command(CommandType.SET, new StatusOutput<>(StringCodec.UTF8), "page", LONG),
            command(CommandType.GET, new ValueOutput<>(StringCodec.UTF8), "page"),
            exec,
            command(CommandType.GET, new ValueOutput<>(StringCodec.UTF8), "page")));
    assertEquals(LONG, exec.get(60, TimeUnit.SECONDS).get(1));
    assertEquals(Encoding.ZSTD, encodingAt(plain, "page"));
  }

  private static <T> AsyncCommand<String, String, T> command(
      CommandType type, CommandOutput<String, String, T> output, String... arguments) {
    CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
    for (String argument : arguments) {
      args.addKey(argument);
    }
    return new AsyncCommand<>(new Command<>(type, output, args));
  }
}
