package dev.snugly.lettuce;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.RedisCommand;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * What one connection does before it dispatches a command. A transaction in which a command was
 * refused is discarded at EXEC, as a server does it: half of it must not run.
 */
final class Dispatcher<K, V> {
  /** The connection's own way to dispatch what is prepared. */
  interface Way<K, V> {
    <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command);
  }

  private static final Set<String> BEGINS = Set.of(CommandType.MULTI.name());
  private static final Set<String> ENDS =
      Set.of(CommandType.EXEC.name(), CommandType.DISCARD.name());

  private final Compressor compressor;
  private final RedisCodec<K, V> codec;
  private final BooleanSupplier isMulti;

  /** What was refused since MULTI, or null. */
  private volatile RuntimeException refused;

  Dispatcher(Compressor compressor, RedisCodec<K, V> codec, BooleanSupplier isMulti) {
    this.compressor = compressor;
    this.codec = codec;
    this.isMulti = isMulti;
  }

  /** Dispatches a command, prepared. */
  <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command, Way<K, V> connection) {
    if (refused != null && Compressor.isExec(command)) {
      discard(command, connection);
      return command;
    }
    return connection.dispatch(prepared(command, isMulti.getAsBoolean()));
  }

  /** Prepares several commands, which may begin a transaction; none is sent if one is refused. */
  Collection<RedisCommand<K, V, ?>> prepared(Collection<? extends RedisCommand<K, V, ?>> commands) {
    List<RedisCommand<K, V, ?>> prepared = new ArrayList<>(commands.size());
    boolean isQueued = isMulti.getAsBoolean();
    for (RedisCommand<K, V, ?> command : commands) {
      prepared.add(prepared(command, isQueued));
      String type = command.getType().toString();
      isQueued = BEGINS.contains(type) || (isQueued && !ENDS.contains(type));
    }
    return prepared;
  }

  private <T> RedisCommand<K, V, T> prepared(RedisCommand<K, V, T> command, boolean isQueued) {
    if (!isQueued) {
      refused = null;
    }
    try {
      return compressor.prepared(command, codec, isQueued);
    } catch (RuntimeException error) {
      if (isMulti.getAsBoolean()) {
        refused = error;
      }
      throw error;
    }
  }

  private void discard(RedisCommand<K, V, ?> exec, Way<K, V> connection) {
    RuntimeException why = refused;
    refused = null;
    connection.dispatch(
        new AsyncCommand<>(new Command<>(CommandType.DISCARD, new StatusOutput<>(codec))));
    exec.completeExceptionally(
        new RedisCommandExecutionException(
            "EXECABORT Transaction discarded because a command was refused: " + why.getMessage()));
  }
}
