package dev.snugly.lettuce;

import dev.snugly.core.catalogue.DictionaryCommand;
import dev.snugly.core.catalogue.DictionaryReply;
import dev.snugly.core.catalogue.DictionaryServer;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.SetArgs;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Asks for dictionaries on the connection of its client. */
final class LettuceDictionaryServer implements DictionaryServer {
  private final DictionaryConnection connection;

  LettuceDictionaryServer(DictionaryConnection connection) {
    this.connection = connection;
  }

  @Override
  public List<DictionaryReply> send(List<DictionaryCommand> commands) {
    return connection.ask(
        opened -> {
          List<RedisFuture<?>> sent =
              commands.stream().<RedisFuture<?>>map(each -> sent(opened.commands(), each)).toList();
          List<DictionaryReply> replies = new ArrayList<>();
          sent.forEach(each -> replies.add(reply(each, opened.timeoutNanos())));
          return replies;
        });
  }

  private static RedisFuture<?> sent(
      RedisClusterAsyncCommands<byte[], byte[]> commands, DictionaryCommand command) {
    byte[] key = command.key();
    return switch (command.verb()) {
      case GET -> commands.get(key);
      case TOUCH -> commands.touch(key);
      case SET -> commands.set(key, command.value());
      case SET_IF_ABSENT -> commands.set(key, command.value(), SetArgs.Builder.nx());
    };
  }

  private static DictionaryReply reply(RedisFuture<?> sent, long timeoutNanos) {
    try {
      return DictionaryReply.of(
          LettuceFutures.awaitOrCancel(sent, timeoutNanos, TimeUnit.NANOSECONDS));
    } catch (RedisCommandExecutionException error) {
      return DictionaryReply.error(error.getMessage());
    }
  }

  /** Leaves the connection open for others: it is the client's. */
  @Override
  public void close() {
    connection.forgetIfLost();
  }
}
