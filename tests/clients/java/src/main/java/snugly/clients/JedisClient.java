package snugly.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;

/** Jedis, with its pool of connections. */
final class JedisClient implements Client {
  static final Library LIBRARY = new Library("jedis", "jedis", JedisClient::new);

  private final RedisClient jedis;

  private JedisClient(Library.Options options) {
    var configuration =
        DefaultJedisClientConfig.builder().clientName(options.name()).password(options.password());
    if (options.protocol() == 2) {
      configuration.resp2();
    }
    jedis =
        RedisClient.builder()
            .hostAndPort(options.address().host(), options.address().port())
            .clientConfig(configuration.build())
            .build();
  }

  @Override
  public String ping() {
    return jedis.ping();
  }

  @Override
  public String clientInfo() {
    var info = jedis.executeCommand(new CommandArguments(Command.CLIENT).add("INFO"));
    return new String((byte[]) info, UTF_8);
  }

  @Override
  public void flushAll() {
    jedis.flushAll();
  }

  @Override
  public void set(String key, String value) {
    jedis.set(key, value);
  }

  @Override
  public void set(String key, String value, long seconds) {
    jedis.set(key, value, SetParams.setParams().ex(seconds));
  }

  @Override
  public void setBytes(String key, byte[] value) {
    jedis.set(key.getBytes(UTF_8), value);
  }

  @Override
  public String get(String key) {
    return jedis.get(key);
  }

  @Override
  public byte[] getBytes(String key) {
    return jedis.get(key.getBytes(UTF_8));
  }

  @Override
  public void mset(Map<String, String> values) {
    var words = values.entrySet().stream().flatMap(e -> List.of(e.getKey(), e.getValue()).stream());
    jedis.mset(words.toArray(String[]::new));
  }

  @Override
  public List<String> mget(String... keys) {
    return jedis.mget(keys);
  }

  @Override
  public long incrBy(String key, long by) {
    return jedis.incrBy(key, by);
  }

  @Override
  public long del(String... keys) {
    return jedis.del(keys);
  }

  @Override
  public long ttl(String key) {
    return jedis.ttl(key);
  }

  @Override
  public boolean expire(String key, long seconds) {
    return jedis.expire(key, seconds) == 1;
  }

  @Override
  public boolean persist(String key) {
    return jedis.persist(key) == 1;
  }

  @Override
  public Collection<String> scan(String pattern, int count) {
    return jedis.scanIteration(count, pattern).collect(new HashSet<>());
  }

  @Override
  public void command(String name, String argument) {
    ProtocolCommand command = () -> name.getBytes(UTF_8);
    jedis.executeCommand(new CommandArguments(command).add(argument));
  }

  @Override
  public Pipelined pipeline(List<String> keys, String value) {
    try (var pipeline = jedis.pipelined()) {
      keys.forEach(key -> pipeline.set(key, value));
      var refused = pipeline.incr(keys.get(0));
      var read = keys.stream().map(pipeline::get).toList();
      pipeline.sync();
      return new Pipelined(read.stream().map(Response::get).toList(), errorOf(refused));
    }
  }

  private static String errorOf(Response<Long> response) {
    try {
      return "no error, but " + response.get();
    } catch (JedisDataException error) {
      return error.getMessage();
    }
  }

  @Override
  public List<Object> transaction(String key, long number) {
    try (var transaction = jedis.multi()) {
      transaction.set(key, String.valueOf(number));
      transaction.incr(key);
      transaction.get(key);
      return transaction.exec();
    }
  }

  @Override
  public long deleteIfEqual(String key, String value) {
    var digest = jedis.scriptLoad(Scripts.DELETE_IF_EQUAL);
    return (long) jedis.evalsha(digest, 1, key, value);
  }

  @Override
  public boolean watch(String key, String value, Runnable meddle) {
    try (var transaction = jedis.transaction(false)) {
      transaction.watch(key);
      meddle.run();
      transaction.multi();
      transaction.set(key, value);
      return transaction.exec() != null;
    }
  }

  @Override
  public void close() {
    jedis.close();
  }
}
