package dev.snugly.lettuce;

import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.json.JsonParser;
import io.lettuce.core.protocol.PushHandler;
import io.lettuce.core.protocol.RedisCommand;
import java.time.Duration;
import java.util.Collection;
import java.util.function.Supplier;

/** A connection to one server that compresses. */
final class CompressedConnection<K, V> extends StatefulRedisConnectionImpl<K, V> {
  private final Dispatcher<K, V> dispatcher;

  CompressedConnection(
      Commands commands,
      RedisChannelWriter writer,
      PushHandler pushHandler,
      RedisCodec<K, V> codec,
      Duration timeout,
      Supplier<JsonParser> parser) {
    super(writer, pushHandler, codec, timeout, parser);
    dispatcher = new Dispatcher<>(commands, codec, this::isMulti);
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
