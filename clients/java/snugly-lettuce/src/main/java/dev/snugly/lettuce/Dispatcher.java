package dev.snugly.lettuce;

import dev.snugly.core.client.Reply;
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
 * Work of one connection before it dispatches a command. A transaction in which a command was
 * refused is discarded at EXEC, as a server does it: half of it must not run.
 */
final class Dispatcher<K, V> {
  /** The connection's own way to dispatch what is prepared. */
  interface Way<K, V> {
    <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command);
  }

  private static final String BEGINS = CommandType.MULTI.name();
  private static final Set<String> ENDS =
      Set.of(CommandType.EXEC.name(), CommandType.DISCARD.name());

  private final Commands commands;
  private final RedisCodec<K, V> codec;
  private final BooleanSupplier isMulti;

  /** Refusal since MULTI, or null. */
  private volatile RuntimeException refused;

  /** Restores the replies to all commands since MULTI; null outside of a transaction. */
  private volatile Reply transaction;

  Dispatcher(Commands commands, RedisCodec<K, V> codec, BooleanSupplier isMulti) {
    this.commands = commands;
    this.codec = codec;
    this.isMulti = isMulti;
  }

  /** Dispatches a command, prepared. */
  <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command, Way<K, V> connection) {
    boolean isQueued = isMulti.getAsBoolean();
    if (isDiscarded(command, isQueued)) {
      connection.dispatch(discardFor(command));
      return command;
    }
    return connection.dispatch(prepared(command, isQueued));
  }

  /** Prepares several commands, which may begin a transaction; none is sent if one is refused. */
  Collection<RedisCommand<K, V, ?>> prepared(Collection<? extends RedisCommand<K, V, ?>> batch) {
    List<RedisCommand<K, V, ?>> prepared = new ArrayList<>(batch.size());
    boolean isQueued = isMulti.getAsBoolean();
    for (RedisCommand<K, V, ?> command : batch) {
      prepared.add(
          isDiscarded(command, isQueued) ? discardFor(command) : prepared(command, isQueued));
      String type = command.getType().toString();
      isQueued = BEGINS.equals(type) || (isQueued && !ENDS.contains(type));
    }
    return prepared;
  }

  /** Whether a command would run a transaction in which one was refused. */
  private boolean isDiscarded(RedisCommand<K, V, ?> command, boolean isQueued) {
    return refused != null && isQueued && Commands.isExec(command);
  }

  private <T> RedisCommand<K, V, T> prepared(RedisCommand<K, V, T> command, boolean isQueued) {
    if (!isQueued && refused != null) {
      refused = null;
    }
    try {
      return commands.prepared(command, codec, transactionOf(command, isQueued));
    } catch (RuntimeException error) {
      if (isMulti.getAsBoolean()) {
        refused = error;
      }
      throw error;
    }
  }

  /** What restores the reply of a command of a transaction, which begins with its first one. */
  private Reply transactionOf(RedisCommand<K, V, ?> command, boolean isQueued) {
    Reply current = transaction;
    if (!isQueued) {
      if (current != null) {
        transaction = null;
      }
      return null;
    }
    current = current == null ? commands.reply() : current;
    transaction = ENDS.contains(command.getType().toString()) ? null : current;
    return current;
  }

  /** Command in place of EXEC, which fails when that has come back. */
  private RedisCommand<K, V, String> discardFor(RedisCommand<K, V, ?> exec) {
    RedisCommandExecutionException aborted =
        new RedisCommandExecutionException(
            "EXECABORT Transaction discarded because a command was refused: "
                + refused.getMessage());
    refused = null;
    AsyncCommand<K, V, String> discard =
        new AsyncCommand<>(new Command<>(CommandType.DISCARD, new StatusOutput<>(codec)));
    discard.onComplete((status, error) -> exec.completeExceptionally(aborted));
    return discard;
  }
}
