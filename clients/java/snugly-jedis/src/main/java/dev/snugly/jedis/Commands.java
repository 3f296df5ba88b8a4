package dev.snugly.jedis;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import dev.snugly.core.UndecodableException;
import dev.snugly.core.catalogue.DictionaryServer;
import dev.snugly.core.client.Compressor;
import dev.snugly.core.commands.Request;
import dev.snugly.core.commands.Restorer;
import dev.snugly.core.commands.Row;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import redis.clients.jedis.Builder;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.args.Rawable;
import redis.clients.jedis.args.RawableFactory;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.util.KeyValue;

/** The commands of one client, rewritten so that their values are compressed and restored. */
final class Commands implements AutoCloseable {
  private final boolean isEnabled;
  private final Compressor compressor;

  /**
   * What is to be done with the commands that the library knows: finding it by name takes longer.
   */
  private final Map<Protocol.Command, Row> known = new EnumMap<>(Protocol.Command.class);

  /** How the values of replies are restored; maps are lists of the library's own pairs. */
  private final Restorer restorer =
      new Restorer() {
        @Override
        public byte[] value(byte[] stored, byte[] key) {
          return restored(stored, key);
        }

        @Override
        public Map.Entry<Object, Object> entry(Object key, Object value) {
          return new KeyValue<>(key, value);
        }
      };

  Commands(CompressionConfiguration configuration, Supplier<? extends DictionaryServer> servers) {
    isEnabled = configuration.enabled();
    compressor = new Compressor(configuration, servers);
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
   * What is sent for a command and what becomes of its reply, or null if it passes as it is.
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
    return request.restore(reply, restorer);
  }

  private byte[] restored(byte[] stored, byte[] key) {
    try {
      return compressor.codec().decode(stored, key);
    } catch (UndecodableException error) {
      throw new UndecodableReplyException(error);
    }
  }

  /**
   * Executes a command. The reply is restored when its connection is free again, since a dictionary
   * may have to be fetched for that.
   */
  <T> T execute(CommandObject<T> command, CommandExecutor plain) {
    Request request = request(command);
    if (request == null) {
      return plain.executeCommand(command);
    }
    CommandArguments sent = sent(command, request);
    if (!request.isRestored()) {
      return plain.executeCommand(new CommandObject<>(sent, command.getBuilder()));
    }
    Object reply = plain.executeCommand(new CommandObject<>(sent, BuilderFactory.RAW_OBJECT));
    return command.getBuilder().build(restored(request, reply));
  }

  /** The command for a pipeline or a transaction, whose reply is restored when it is asked for. */
  <T> CommandObject<T> deferred(CommandObject<T> command) {
    Request request = request(command);
    if (request == null) {
      return command;
    }
    CommandArguments sent = sent(command, request);
    Builder<T> builder = command.getBuilder();
    if (!request.isRestored()) {
      return new CommandObject<>(sent, builder);
    }
    Builder<T> restoring =
        new Builder<>() {
          @Override
          public T build(Object reply) {
            return builder.build(restored(request, reply));
          }

          @Override
          public String toString() {
            return builder.toString();
          }
        };
    return new CommandObject<>(sent, restoring);
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

  /** Ends the thread that looks after dictionaries, if there is one. */
  @Override
  public void close() {
    compressor.close();
  }
}
