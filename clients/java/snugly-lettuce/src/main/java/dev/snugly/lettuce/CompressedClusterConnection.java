package dev.snugly.lettuce;

import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.cluster.ClusterPushHandler;
import io.lettuce.core.cluster.StatefulRedisClusterConnectionImpl;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.json.JsonParser;
import io.lettuce.core.protocol.RedisCommand;
import java.time.Duration;
import java.util.Collection;
import java.util.function.Supplier;

/**
 * A connection to a cluster that compresses. What it dispatches goes to its nodes without passing
 * their connections' own {@code dispatch}, so nothing is encoded twice.
 */
final class CompressedClusterConnection<K, V> extends StatefulRedisClusterConnectionImpl<K, V> {
  private final Dispatcher<K, V> dispatcher;

  CompressedClusterConnection(
      Commands commands,
      RedisChannelWriter writer,
      ClusterPushHandler pushHandler,
      RedisCodec<K, V> codec,
      Duration timeout,
      Supplier<JsonParser> parser) {
    super(writer, pushHandler, codec, timeout, parser);
    // Transactions are for connections of nodes.
    dispatcher = new Dispatcher<>(commands, codec, () -> false);
  }

  @Override
  public <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command) {
    return dispatcher.dispatch(command, super::dispatch);
  }

  @Override
  public Collection<RedisCommand<K, V, ?>> dispatch(
      Collection<? extends RedisCommand<K, V, ?>> commands) {
    return super.dispatch(dispatcher.prepared(commands));
  }
}
