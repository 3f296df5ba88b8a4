package dev.snugly.jedis;

import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.PooledObjectFactory;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.providers.PooledConnectionProvider;

/** A connection that is made as those of a pool are, and that the pool knows nothing of. */
final class OwnConnection implements CommandExecutor {
  private final PooledObjectFactory<Connection> factory;
  private PooledObject<Connection> connection;

  OwnConnection(PooledConnectionProvider provider) {
    factory = provider.getPool().getFactory();
  }

  @Override
  public <T> T executeCommand(CommandObject<T> command) {
    return open().executeCommand(command);
  }

  private Connection open() {
    if (connection == null) {
      try {
        connection = factory.makeObject();
      } catch (RuntimeException error) {
        throw error;
      } catch (Exception error) {
        throw new JedisConnectionException("there is no connection for dictionaries", error);
      }
    }
    return connection.getObject();
  }

  @Override
  public void close() {
    if (connection == null) {
      return;
    }
    try {
      factory.destroyObject(connection);
    } catch (Exception error) {
      throw new JedisConnectionException("the connection for dictionaries is not closed", error);
    } finally {
      connection = null;
    }
  }
}
