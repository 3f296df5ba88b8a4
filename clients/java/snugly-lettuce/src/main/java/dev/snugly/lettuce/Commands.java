package dev.snugly.lettuce;

import dev.snugly.core.Codec;
import dev.snugly.core.Envelope;
import dev.snugly.core.Gzip;
import dev.snugly.core.Statistics;
import dev.snugly.core.client.Compressor;
import dev.snugly.core.client.Reply;
import dev.snugly.core.commands.Request;
import dev.snugly.core.commands.Row;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateAdapter;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * The commands of one client as they are sent, and the values in their replies as the application
 * gets them.
 */
final class Commands {
  /**
   * The size of a value that does not say it, or not so that it can be believed: over any bound.
   */
  private static final long UNKNOWN = 1L << 31;

  private final LettuceCompression settings;
  private final DictionaryConnection dictionaries;
  private final Compressor compressor;
  private final Threads threads;
  private final boolean readGzip;

  /** Rows of the commands that Lettuce knows: finding them by name takes longer. */
  private final Map<CommandType, Row> known = new EnumMap<>(CommandType.class);

  /**
   * @param connect opens a connection whose values are left alone
   * @param timeout how long a synchronous command waits for its reply, zero for any time
   */
  Commands(
      LettuceCompression settings,
      Supplier<DictionaryConnection.Opened> connect,
      Supplier<Duration> timeout) {
    this.settings = Objects.requireNonNull(settings, "compression");
    dictionaries = new DictionaryConnection(connect);
    compressor =
        new Compressor(
            settings.configuration(), () -> new LettuceDictionaryServer(dictionaries), timeout);
    threads = new Threads(settings);
    readGzip = settings.configuration().readGzip();
    for (CommandType type : CommandType.values()) {
      known.put(type, compressor.row(type.getBytes()));
    }
  }

  Codec codec() {
    return compressor.codec();
  }

  Statistics statistics() {
    return compressor.statistics();
  }

  /** Sees that a connection was made, perhaps to a server that has lost dictionaries. */
  RedisConnectionStateListener connections() {
    return new RedisConnectionStateAdapter() {
      @Override
      public void onRedisConnected(
          RedisChannelHandler<?, ?> connection, SocketAddress socketAddress) {
        compressor.connected();
      }
    };
  }

  /** The database that dictionaries are in; empty for the client's own. */
  OptionalInt database() {
    return settings.configuration().dictionaryDatabase();
  }

  boolean isEnabled() {
    return settings.configuration().enabled();
  }

  /**
   * Returns the command to send: the given one if nothing in it is encoded or restored.
   *
   * @param ofConnection the codec of its connection
   * @param transaction restores all that comes with the reply of EXEC, or null outside of a
   *     transaction
   * @throws dev.snugly.core.CommandRefusedException if the command must not be sent
   */
  <K, V, T> RedisCommand<K, V, T> prepared(
      RedisCommand<K, V, T> command, RedisCodec<K, V> ofConnection, Reply transaction) {
    if (isExec(command)) {
      // Its reply is restored by the commands that were queued.
      return new CompressedCommand<>(
          command,
          null,
          new ReplyRecorder<>(
              command, ofConnection, this, (stored, reply) -> stored, transaction, false));
    }
    Row row = row(command.getType());
    if (row == null) {
      return command;
    }
    Words words = Words.of(command);
    Request request = compressor.request(row, words);
    ByteBuf encoded = request.isEncoded() ? Words.encoded(request.words()) : words.encoded();
    ReplyRecorder<K, V, T> recorder =
        request.isRestored()
            ? new ReplyRecorder<>(
                command,
                ofConnection,
                this,
                (stored, reply) -> request.restore(stored, reply::value),
                transaction,
                transaction != null)
            : null;
    return new CompressedCommand<>(command, encoded, recorder);
  }

  /** Begins to restore a reply, or all that comes with the reply of EXEC. */
  Reply reply() {
    return compressor.reply();
  }

  private Row row(ProtocolKeyword type) {
    return type instanceof CommandType one ? known.get(one) : compressor.row(type.getBytes());
  }

  static boolean isExec(RedisCommand<?, ?, ?> command) {
    return command.getType().toString().equals(CommandType.EXEC.name());
  }

  /** Whether a string is certainly no encoded value, by its first bytes. */
  boolean isPlain(ByteBuffer stored) {
    int start = stored.position();
    if (stored.remaining() < Envelope.HEADER_BYTES) {
      return true;
    }
    boolean isMarked =
        stored.get(start) == 0 && stored.get(start + 1) == 1 && stored.get(start + 2) == 2;
    return !isMarked && !(readGzip && Gzip.begins(stored));
  }

  /** Work to be done for a reply before the application gets it. */
  final class Work {
    private final Reply within;
    private long bytes;

    /** The IDs of dictionaries that are not at hand. */
    private Set<Long> missing = Set.of();

    /**
     * @param within restores the reply
     */
    Work(Reply within) {
      this.within = within;
    }

    /** Adds a string of the reply. */
    void add(byte[] stored) {
      Optional<Envelope> envelope = Envelope.inspect(stored);
      if (envelope.isPresent()) {
        long claimed = envelope.get().size().orElse(UNKNOWN);
        bytes += Long.compareUnsigned(claimed, UNKNOWN) < 0 ? claimed : UNKNOWN;
        int id = compressor.missingDictionary(stored);
        if (id != 0) {
          missing = missing.isEmpty() ? new HashSet<>() : missing;
          missing.add(Integer.toUnsignedLong(id));
        }
      } else if (readGzip && Gzip.begins(stored)) {
        bytes += UNKNOWN;
      }
    }

    /** Executor that is to do it, or empty for the event loop itself. */
    Optional<Executor> elsewhere() {
      if (!missing.isEmpty()) {
        return Optional.of(threads.after(within.look(missing)));
      }
      return bytes > settings.eventLoopBytes() ? Optional.of(threads.decoding()) : Optional.empty();
    }
  }

  /** Ends when nothing of it uses connections any more, unless that takes seconds. */
  CompletableFuture<Void> closeAsync() {
    // It may ask a last time, and that takes up to a second.
    return CompletableFuture.runAsync(compressor::close)
        .thenCompose(closed -> dictionaries.closeAsync());
  }
}
