package dev.snugly.jedis;

import dev.snugly.core.catalogue.DictionaryServer;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;

/** How dictionaries are asked for: on a connection beside the pool, or as the client does it. */
final class ClientServer implements DictionaryServer {
  private final CommandExecutor executor;
  private final Runnable close;

  private ClientServer(CommandExecutor executor, Runnable close) {
    this.executor = executor;
    this.close = close;
  }

  /**
   * The way to the server of a client.
   *
   * @param plain the client's own executor, which finds nodes and follows a failover
   * @param provider where its connections come from
   */
  static ClientServer of(CommandExecutor plain, ConnectionProvider provider) {
    if (provider instanceof PooledConnectionProvider pooled) {
      // A pipeline may hold the last connection of the pool while a dictionary is waited for.
      OwnConnection own = new OwnConnection(pooled);
      return new ClientServer(own, own::close);
    }
    return new ClientServer(plain, () -> {});
  }

  @Override
  public byte[] get(byte[] key) {
    CommandArguments arguments = EncodedArguments.of(Command.GET, key);
    return executor.executeCommand(new CommandObject<>(arguments, BuilderFactory.BINARY));
  }

  @Override
  public boolean touch(byte[] key) {
    CommandArguments arguments = EncodedArguments.of(Command.TOUCH, key);
    return executor.executeCommand(new CommandObject<>(arguments, BuilderFactory.LONG)) > 0;
  }

  @Override
  public boolean setIfAbsent(byte[] key, byte[] value) {
    CommandArguments arguments = EncodedArguments.of(Command.SET, key).add(value).add("NX");
    return executor.executeCommand(new CommandObject<>(arguments, BuilderFactory.STRING)) != null;
  }

  @Override
  public Failure failure(RuntimeException error) {
    if (!(error instanceof JedisDataException)) {
      return Failure.PASSING;
    }
    String message = error.getMessage();
    return message != null && message.startsWith("NOPERM") ? Failure.DENIED : Failure.REPLY;
  }

  @Override
  public void close() {
    close.run();
  }
}
