package dev.snugly.lettuce;

import dev.snugly.core.catalogue.DictionaryServer;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.SetArgs;

/** Asks for dictionaries on the connection of its client. */
final class LettuceDictionaryServer implements DictionaryServer {
  private final DictionaryConnection connection;

  LettuceDictionaryServer(DictionaryConnection connection) {
    this.connection = connection;
  }

  @Override
  public byte[] get(byte[] key) {
    return connection.ask(commands -> commands.get(key));
  }

  @Override
  public boolean touch(byte[] key) {
    return connection.ask(commands -> commands.touch(key) > 0);
  }

  @Override
  public boolean setIfAbsent(byte[] key, byte[] value) {
    return connection.ask(commands -> commands.set(key, value, SetArgs.Builder.nx()) != null);
  }

  @Override
  public Failure failure(RuntimeException error) {
    if (!(error instanceof RedisCommandExecutionException)) {
      return Failure.PASSING;
    }
    String message = error.getMessage();
    return message != null && message.startsWith("NOPERM") ? Failure.DENIED : Failure.REPLY;
  }

  /** The connection is the client's, and stays open for others. */
  @Override
  public void close() {
    connection.forgetIfLost();
  }
}
