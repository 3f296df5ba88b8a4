package dev.snugly.lettuce;

import dev.snugly.core.catalogue.DictionaryServer;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import java.util.function.Supplier;

/** Asks for dictionaries on a connection of its own, whose values are left alone. */
final class LettuceDictionaryServer implements DictionaryServer {
  /** The codec of connections that do not compress. */
  static final RedisCodec<byte[], byte[]> PLAIN = new ByteArrayCodec();

  /**
   * An open connection.
   *
   * @param connection to close
   * @param commands of it
   */
  record Opened(
      StatefulConnection<byte[], byte[]> connection,
      RedisClusterCommands<byte[], byte[]> commands) {}

  private final Supplier<Opened> connect;
  private Opened opened;

  LettuceDictionaryServer(Supplier<Opened> connect) {
    this.connect = connect;
  }

  private RedisClusterCommands<byte[], byte[]> commands() {
    if (opened == null) {
      opened = connect.get();
    }
    return opened.commands();
  }

  @Override
  public byte[] get(byte[] key) {
    return commands().get(key);
  }

  @Override
  public boolean touch(byte[] key) {
    return commands().touch(key) > 0;
  }

  @Override
  public boolean setIfAbsent(byte[] key, byte[] value) {
    return commands().set(key, value, SetArgs.Builder.nx()) != null;
  }

  @Override
  public Failure failure(RuntimeException error) {
    if (!(error instanceof RedisCommandExecutionException)) {
      return Failure.PASSING;
    }
    String message = error.getMessage();
    return message != null && message.startsWith("NOPERM") ? Failure.DENIED : Failure.REPLY;
  }

  @Override
  public void close() {
    if (opened != null) {
      opened.connection().close();
      opened = null;
    }
  }
}
