package dev.snugly.jedis;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import dev.snugly.core.UndecodableException;
import dev.snugly.core.client.Compressor;
import dev.snugly.core.client.Reply;
import dev.snugly.core.commands.Request;
import dev.snugly.core.commands.Restorer;
import dev.snugly.core.commands.Row;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.args.Rawable;
import redis.clients.jedis.args.RawableFactory;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;
import redis.clients.jedis.util.KeyValue;

/** The commands of one client, rewritten so that their values are compressed and restored. */
final class Commands implements AutoCloseable {
  private final boolean isEnabled;
  private final Compressor compressor;

  /** Treatment of the commands that the library knows: finding it by name takes longer. */
  private final Map<Protocol.Command, Row> known = new EnumMap<>(Protocol.Command.class);

  /**
   * Number of connections that the pool has made, where that can be seen; it tries again by itself.
   */
  private final LongSupplier connections;

  private volatile long connectionsSeen;

  /** Whether nothing was answered since a connection was lost. */
  private volatile boolean isLost;

  /** Restores the values of replies; maps are lists of the library's own pairs. */
  private record Restoring(Reply reply) implements Restorer {
    @Override
    public byte[] value(byte[] stored, byte[] key) {
      try {
        return reply.value(stored, key);
      } catch (UndecodableException error) {
        throw new UndecodableReplyException(error);
      }
    }

    @Override
    public Map.Entry<Object, Object> entry(Object key, Object value) {
      return new KeyValue<>(key, value);
    }
  }

  /**
   * @param plain the client's own executor
   * @param provider where its connections come from
   * @param readTimeout how long they wait for a reply, zero for any time
   */
  Commands(
      CompressionConfiguration configuration,
      CommandExecutor plain,
      ConnectionProvider provider,
      Duration readTimeout) {
    isEnabled = configuration.enabled();
    compressor =
        new Compressor(
            configuration, ClientServer.of(plain, provider, configuration), () -> readTimeout);
    connections =
        provider instanceof PooledConnectionProvider pooled
            ? pooled.getPool()::getCreatedCount
            : () -> 0;
    for (Protocol.Command command : Protocol.Command.values()) {
      known.put(command, compressor.row(command.getRaw()));
    }
  }

  Codec codec() {
    return compressor.codec();
  }

  Statistics statistics() {
    return compressor.statistics();
  }

  /**
   * Returns the request for a command and the treatment of its reply, or null for none.
   *
   * @throws dev.snugly.core.CommandRefusedException if it must not be sent
   */
  Request request(CommandObject<?> command) {
    CommandArguments arguments = command.getArguments();
    Row row = isEnabled ? row(arguments.getCommand()) : null;
    return row == null ? null : compressor.request(row, words(arguments));
  }

  private Row row(ProtocolCommand command) {
    return command instanceof Protocol.Command one
        ? known.get(one)
        : compressor.row(command.getRaw());
  }

  /** The reply to a command with its values. */
  Object restored(Request request, Object reply) {
    Reply within = reply();
    if (!(reply instanceof byte[])) {
      within.gather(reply);
    }
    return restored(request, reply, within);
  }

  /** The reply to a command with its values, which came together with others. */
  Object restored(Request request, Object raw, Reply within) {
    return request.restore(raw, new Restoring(within));
  }

  /** Begins to restore what came together. */
  Reply reply() {
    return compressor.reply();
  }

  /** Executes what asks the server, and sees whether that may be another one than before. */
  <T> T watched(Supplier<T> execution) {
    T result;
    try {
      result = execution.get();
    } catch (JedisConnectionException error) {
      isLost = true;
      throw error;
    }
    long made = connections.getAsLong();
    if (isLost || made != connectionsSeen) {
      isLost = false;
      connectionsSeen = made;
      compressor.connected();
    }
    return result;
  }

  /**
   * Executes a command. The reply is restored when its connection is free again, since a dictionary
   * may have to be fetched for that.
   */
  <T> T execute(CommandObject<T> command, CommandExecutor plain) {
    Request request = request(command);
    if (request == null) {
      return watched(() -> plain.executeCommand(command));
    }
    CommandArguments sent = sent(command, request);
    if (!request.isRestored()) {
      return watched(() -> plain.executeCommand(new CommandObject<>(sent, command.getBuilder())));
    }
    Object reply =
        watched(() -> plain.executeCommand(new CommandObject<>(sent, BuilderFactory.RAW_OBJECT)));
    return command.getBuilder().build(restored(request, reply));
  }

  /**
   * Gives a command to a pipeline or a transaction. Its reply is restored when it is asked for.
   *
   * @param batch what it is sent with
   * @param append gives what is sent to the library's own
   */
  <T> Response<T> append(CommandObject<T> command, Batch batch, Appending append) {
    Request request = request(command);
    if (request == null) {
      return batch.plain(append.to(command));
    }
    CommandArguments sent = sent(command, request);
    if (!request.isRestored()) {
      return batch.plain(append.to(new CommandObject<>(sent, command.getBuilder())));
    }
    Response<Object> raw = append.to(new CommandObject<>(sent, BuilderFactory.RAW_OBJECT));
    return batch.restored(request, raw, command.getBuilder());
  }

  /** Gives a command to a pipeline or a transaction of the library's own. */
  interface Appending {
    <T> Response<T> to(CommandObject<T> command);
  }

  private static CommandArguments sent(CommandObject<?> command, Request request) {
    CommandArguments arguments = command.getArguments();
    return request.isEncoded()
        ? new EncodedArguments(arguments, rawables(request.words()))
        : arguments;
  }

  private static List<byte[]> words(CommandArguments arguments) {
    List<byte[]> words = new ArrayList<>(arguments.size());
    for (Rawable each : arguments) {
      words.add(each.getRaw());
    }
    return words;
  }

  private static List<Rawable> rawables(List<byte[]> words) {
    List<Rawable> rawables = new ArrayList<>(words.size());
    words.forEach(each -> rawables.add(RawableFactory.from(each)));
    return rawables;
  }

  /** Ends the thread that maintains dictionaries, if there is one. */
  @Override
  public void close() {
    compressor.close();
  }
}
