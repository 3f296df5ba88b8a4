package dev.snugly.spring;

import dev.snugly.core.Codec;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.function.Supplier;
import org.springframework.data.redis.cache.RedisCacheWriter;

/**
 * Has an entry that cannot be read loaded anew where Spring Data Redis loads what is not there by
 * itself, as for {@code @Cacheable(sync = true)}: to it such an entry would be a null that is
 * cached.
 */
final class ReadableEntries implements InvocationHandler {
  private final RedisCacheWriter inner;
  private final Codec codec;

  private ReadableEntries(RedisCacheWriter inner, Codec codec) {
    this.inner = inner;
    this.codec = codec;
  }

  /** A writer around another one, whose entries the codec has encoded. */
  static RedisCacheWriter of(RedisCacheWriter inner, Codec codec) {
    return (RedisCacheWriter)
        Proxy.newProxyInstance(
            RedisCacheWriter.class.getClassLoader(),
            new Class<?>[] {RedisCacheWriter.class},
            new ReadableEntries(inner, codec));
  }

  @Override
  @SuppressWarnings("unchecked") // What the loader of a writer is.
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    Object result;
    try {
      result = method.invoke(inner, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
    if (method.getName().equals("get")
        && arguments.length == 5
        && arguments[2] instanceof Supplier<?> loader) {
      return readable(
          (byte[]) result,
          (String) arguments[0],
          (byte[]) arguments[1],
          (Supplier<byte[]>) loader,
          (Duration) arguments[3]);
    }
    return result instanceof RedisCacheWriter other ? of(other, codec) : result;
  }

  private byte[] readable(
      byte[] found, String cache, byte[] key, Supplier<byte[]> loader, Duration timeToLive) {
    if (found == null || SnuglyRedisSerializer.restored(found, codec) != null) {
      return found;
    }
    byte[] loaded = loader.get();
    if (loaded != null) {
      inner.put(cache, key, loaded, timeToLive);
    }
    return loaded;
  }
}
