package dev.snugly.jedis;

import dev.snugly.core.catalogue.DictionaryCommand;
import dev.snugly.core.catalogue.DictionaryReply;
import dev.snugly.core.catalogue.DictionaryServer;
import java.util.List;
import java.util.OptionalInt;
import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.PooledObjectFactory;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;

/**
 * A connection for dictionaries alone, in their database: one that is made as those of a pool are,
 * and that the pool knows nothing of, or one of a client's that never comes back to it.
 */
final class OwnConnection implements DictionaryServer {
  /** Source of connections. */
  private interface Source {
    Opened open() throws Exception;
  }

  /** An open connection and what closes it. */
  private record Opened(Connection connection, Closing close) {}

  private interface Closing {
    void run() throws Exception;
  }

  private final Source source;
  private final OptionalInt database;
  private Opened opened;

  private OwnConnection(Source source, OptionalInt database) {
    this.source = source;
    this.database = database;
  }

  /** One beside a pool. */
  static OwnConnection beside(PooledConnectionProvider provider, OptionalInt database) {
    PooledObjectFactory<Connection> factory = provider.getPool().getFactory();
    return new OwnConnection(
        () -> {
          PooledObject<Connection> made = factory.makeObject();
          return new Opened(made.getObject(), () -> factory.destroyObject(made));
        },
        database);
  }

  /** One that a client gives away. */
  static OwnConnection of(ConnectionProvider provider, OptionalInt database) {
    return new OwnConnection(
        () -> {
          Connection given = provider.getConnection();
          return new Opened(
              given,
              () -> {
                given.setBroken(); // It is in another database.
                given.close();
              });
        },
        database);
  }

  @Override
  public List<DictionaryReply> send(List<DictionaryCommand> commands) {
    try {
      return ClientServer.sent(commands, open()).stream().map(ClientServer::reply).toList();
    } catch (JedisDataException error) {
      // The user may not open it, or select its database.
      return commands.stream().map(command -> ClientServer.reply(error)).toList();
    }
  }

  private Connection open() {
    if (opened == null) {
      try {
        opened = source.open();
      } catch (RuntimeException error) {
        throw error;
      } catch (Exception error) {
        throw new JedisConnectionException("there is no connection for dictionaries", error);
      }
      database.ifPresent(this::select);
    }
    return opened.connection();
  }

  private void select(int number) {
    CommandArguments arguments = new CommandArguments(Command.SELECT).add(number);
    try {
      opened.connection().executeCommand(new CommandObject<>(arguments, BuilderFactory.STRING));
    } catch (RuntimeException error) {
      close(); // Nothing is to be asked of another database.
      throw error;
    }
  }

  @Override
  public void close() {
    if (opened == null) {
      return;
    }
    try {
      opened.close().run();
    } catch (Exception error) {
      throw new JedisConnectionException("the connection for dictionaries is not closed", error);
    } finally {
      opened = null;
    }
  }
}
