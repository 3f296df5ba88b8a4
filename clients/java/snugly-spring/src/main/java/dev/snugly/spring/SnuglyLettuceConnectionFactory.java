package dev.snugly.spring;

import dev.snugly.core.Codec;
import dev.snugly.core.Statistics;
import dev.snugly.lettuce.LettuceCompression;
import dev.snugly.lettuce.SnuglyRedisClient;
import dev.snugly.lettuce.SnuglyRedisClusterClient;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.resource.ClientResources;
import java.util.ArrayList;
import java.util.List;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Lettuce's connections for Spring Data Redis, which compress by commands: values of strings are
 * compressed, whoever asks, and members of sets, messages, scripts and numbers are left alone. What
 * a server would run on compressed bytes, such as APPEND, is refused before it is sent.
 */
public class SnuglyLettuceConnectionFactory extends LettuceConnectionFactory {
  private final boolean isStatic;
  private final LettuceCompression compression;

  /**
   * A factory of connections to what Spring Data Redis knows: a server, sentinels, a cluster.
   *
   * @param configuration where to connect to
   * @param clientConfiguration how to connect
   * @param compression how to compress
   */
  public SnuglyLettuceConnectionFactory(
      RedisConfiguration configuration,
      LettuceClientConfiguration clientConfiguration,
      LettuceCompression compression) {
    super(configuration, clientConfiguration);
    isStatic = RedisConfiguration.isStaticMasterReplicaConfiguration(configuration);
    this.compression = compression;
  }

  /**
   * Returns what the connections have counted.
   *
   * @throws IllegalStateException before the factory was started
   */
  public Statistics statistics() {
    return getRequiredNativeClient() instanceof SnuglyRedisClusterClient cluster
        ? cluster.statistics()
        : ((SnuglyRedisClient) getRequiredNativeClient()).statistics();
  }

  /**
   * Returns what encodes and decodes for the connections, for metrics and tools.
   *
   * @throws IllegalStateException before the factory was started
   */
  public Codec codec() {
    return getRequiredNativeClient() instanceof SnuglyRedisClusterClient cluster
        ? cluster.codec()
        : ((SnuglyRedisClient) getRequiredNativeClient()).codec();
  }

  @Override
  protected AbstractRedisClient createClient() {
    AbstractRedisClient plain = super.createClient();
    ClientResources shared = getClientConfiguration().getClientResources().orElse(null);
    try {
      return plain instanceof RedisClusterClient cluster
          ? compressing(cluster, shared)
          : compressing((RedisClient) plain, shared);
    } finally {
      plain.shutdown();
    }
  }

  private SnuglyRedisClient compressing(RedisClient plain, ClientResources shared) {
    SnuglyRedisClient client = SnuglyRedisClient.create(shared, address(plain), compression);
    client.setOptions(plain.getOptions());
    return client;
  }

  /**
   * The server of dictionaries: with a primary and replicas the first, as their client has none.
   */
  private RedisURI address(RedisClient plain) {
    if (!isStatic) {
      return (RedisURI) field(plain, "redisURI");
    }
    Object provider = doCreateConnectionProvider(plain, StringCodec.UTF8);
    return (RedisURI) ((Iterable<?>) field(provider, "nodes")).iterator().next();
  }

  private SnuglyRedisClusterClient compressing(RedisClusterClient plain, ClientResources shared) {
    List<RedisURI> uris = new ArrayList<>();
    ((Iterable<?>) field(plain, "initialUris")).forEach(each -> uris.add((RedisURI) each));
    SnuglyRedisClusterClient client = SnuglyRedisClusterClient.create(shared, uris, compression);
    client.setOptions((ClusterClientOptions) plain.getOptions());
    return client;
  }

  /** Spring Data Redis asks a client for its address in the same way: there is no other one. */
  private static Object field(Object client, String name) {
    return new DirectFieldAccessor(client).getPropertyValue(name);
  }
}
