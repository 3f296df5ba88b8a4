package dev.snugly.lettuce;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Envelope;
import dev.snugly.core.catalogue.DictionaryServer;
import dev.snugly.core.catalogue.Keeper;
import dev.snugly.core.commands.CommandTable;
import dev.snugly.core.commands.Request;
import dev.snugly.core.commands.Row;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.RedisCommand;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/** What becomes of the commands of one client, and of the values in their replies. */
final class Compressor implements AutoCloseable {
  private final LettuceCompression settings;
  private final Keeper keeper;
  private final Codec codec;
  private final CommandTable table;

  Compressor(LettuceCompression settings, Supplier<? extends DictionaryServer> servers) {
    this.settings = settings;
    CompressionConfiguration configuration = settings.configuration();
    keeper = new Keeper(configuration, servers, counter -> codec().count(counter));
    codec = new Codec(configuration, keeper);
    table = CommandTable.of(configuration.valueTypes());
  }

  Codec codec() {
    return codec;
  }

  boolean isEnabled() {
    return settings.configuration().enabled();
  }

  /**
   * What is to be sent for a command: the command itself if nothing in it is encoded or restored.
   *
   * @param ofConnection the codec of its connection
   * @param isQueued whether the reply comes with that of EXEC
   * @throws dev.snugly.core.CommandRefusedException if the command must not be sent
   */
  <K, V, T> RedisCommand<K, V, T> prepared(
      RedisCommand<K, V, T> command, RedisCodec<K, V> ofConnection, boolean isQueued) {
    byte[] name = command.getType().getBytes();
    Row row = table.row(name);
    if (row != null) {
      List<byte[]> words = Words.of(command);
      Request request = row.request(words, codec::encode);
      return request.words() == words && !request.isRestored()
          ? command
          : new CompressedCommand<>(
              command,
              request.words(),
              request.isRestored()
                  ? new ReplyRecorder<>(command, ofConnection, this, request, isQueued)
                  : null);
    }
    return isExec(command)
        ? new CompressedCommand<>(
            command, null, new ReplyRecorder<>(command, ofConnection, this, null, false))
        : command;
  }

  static boolean isExec(RedisCommand<?, ?, ?> command) {
    return command.getType().toString().equals(CommandType.EXEC.name());
  }

  /** A value as the application gets it. */
  byte[] restored(byte[] stored, byte[] key) {
    byte[] value = codec.decode(stored, key);
    return isGzip(value)
        ? Gzip.restored(value, settings.configuration().maxDecompressedSize())
        : value;
  }

  /** Whether a string is certainly no encoded value, by its first bytes. */
  boolean isPlain(ByteBuffer stored) {
    int start = stored.position();
    if (stored.remaining() < Envelope.HEADER_BYTES) {
      return true;
    }
    boolean isMarked =
        stored.get(start) == 0 && stored.get(start + 1) == 1 && stored.get(start + 2) == 2;
    return !isMarked && !(settings.readGzip() && stored.get(start) == Gzip.FIRST);
  }

  private boolean isGzip(byte[] stored) {
    return settings.readGzip() && Gzip.begins(stored);
  }

  /** How much there is to do for a reply before the application gets it. */
  final class Work {
    private long bytes;
    private boolean needsFetch;

    /** Adds a string of the reply. */
    void add(byte[] stored) {
      Optional<Envelope> envelope = Envelope.inspect(stored);
      if (envelope.isPresent()) {
        bytes += Math.min(envelope.get().size().orElse(Integer.MAX_VALUE), Integer.MAX_VALUE);
        envelope.get().dictionary().ifPresent(id -> needsFetch |= keeper.find((int) id) == null);
      } else if (isGzip(stored)) {
        bytes += Gzip.claimedSize(stored);
      }
    }

    /** Who is to do it, or empty for the event loop itself. */
    Optional<Executor> elsewhere() {
      if (needsFetch) {
        return Optional.of(Threads.FETCHING);
      }
      return bytes > settings.eventLoopBytes()
          ? Optional.of(settings.decodeExecutor())
          : Optional.empty();
    }
  }

  @Override
  public void close() {
    keeper.close();
  }
}
