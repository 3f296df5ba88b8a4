package dev.snugly.jedis;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.catalogue.DictionaryCommand;
import dev.snugly.core.catalogue.DictionaryReply;
import dev.snugly.core.catalogue.DictionaryServer;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.Supplier;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisRedirectionException;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.providers.ClusterConnectionProvider;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;

/**
 * Asks for dictionaries over the connections of a client, which finds nodes and their successors.
 */
final class ClientServer implements DictionaryServer {
  private final CommandExecutor executor;
  private final ConnectionProvider provider;

  private ClientServer(CommandExecutor executor, ConnectionProvider provider) {
    this.executor = executor;
    this.provider = provider;
  }

  /**
   * Connections to the server of a client: beside the pool where that can be, or the client's.
   *
   * @param plain the client's own executor, which finds nodes and follows a failover
   * @param provider where its connections come from
   * @param configuration says in which database dictionaries are
   * @throws ConfigurationException for another database than that of a cluster
   */
  static Supplier<DictionaryServer> of(
      CommandExecutor plain, ConnectionProvider provider, CompressionConfiguration configuration) {
    OptionalInt database = configuration.dictionaryDatabase();
    if (provider instanceof PooledConnectionProvider pooled) {
      // A pipeline may hold the last connection of the pool while a dictionary is waited for.
      return () -> OwnConnection.beside(pooled, database);
    }
    if (database.isEmpty()) {
      return () -> new ClientServer(plain, provider);
    }
    if (provider instanceof ClusterConnectionProvider) {
      checkForCluster(configuration);
    }
    return () -> OwnConnection.of(provider, database);
  }

  /**
   * Refuses what clusters do not have.
   *
   * @throws ConfigurationException for another database
   */
  static void checkForCluster(CompressionConfiguration configuration) {
    OptionalInt database = configuration.dictionaryDatabase();
    if (database.isPresent()) {
      throw new ConfigurationException(
          "dictionaryDatabase is " + database.getAsInt() + ": leave it out for a cluster");
    }
  }

  @Override
  public List<DictionaryReply> send(List<DictionaryCommand> commands) {
    if (commands.size() > 1) {
      // All keys are in one slot, unless their prefix has no hash tag.
      try (Connection connection = provider.getConnection(arguments(commands.get(0)))) {
        List<Object> replies = sent(commands, connection);
        if (replies.stream().noneMatch(JedisRedirectionException.class::isInstance)) {
          return replies.stream().map(ClientServer::reply).toList();
        }
      } catch (JedisException lost) {
        // The executor finds another node, if there is one.
      }
    }
    return commands.stream().map(this::execute).toList();
  }

  private DictionaryReply execute(DictionaryCommand command) {
    try {
      return reply(
          executor.executeCommand(
              new CommandObject<>(arguments(command), BuilderFactory.RAW_OBJECT)));
    } catch (JedisDataException error) {
      return reply(error);
    }
  }

  /** Sends commands in one round trip, and returns their replies, errors among them. */
  static List<Object> sent(List<DictionaryCommand> commands, Connection connection) {
    commands.forEach(each -> connection.sendCommand(arguments(each)));
    return connection.getMany(commands.size());
  }

  /** The outcome of a reply or of an error of the server. */
  static DictionaryReply reply(Object reply) {
    return reply instanceof JedisDataException error
        ? DictionaryReply.error(error.getMessage())
        : DictionaryReply.of(reply);
  }

  private static CommandArguments arguments(DictionaryCommand command) {
    byte[] key = command.key();
    return switch (command.verb()) {
      case GET -> EncodedArguments.of(Command.GET, key);
      case TOUCH -> EncodedArguments.of(Command.TOUCH, key);
      case SET -> EncodedArguments.of(Command.SET, key).add(command.value());
      case SET_IF_ABSENT -> EncodedArguments.of(Command.SET, key).add(command.value()).add("NX");
    };
  }

  /** Leaves the connections of the client open. */
  @Override
  public void close() {}
}
