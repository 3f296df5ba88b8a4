package dev.snugly.spring;

import dev.snugly.core.ConfigurationException;
import dev.snugly.lettuce.LettuceCompression;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.beans.factory.config.DestructionAwareBeanPostProcessor;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Has a {@link SnuglyLettuceConnectionFactory} take the place of each factory of Lettuce's
 * connections, with all of its settings, before it is initialized.
 */
final class CompressedConnections implements DestructionAwareBeanPostProcessor {
  /** Settings that can be set and not be asked for. */
  private static final List<String> WRITE_ONLY = List.of("executor", "pipeliningFlushPolicy");

  private final Supplier<LettuceCompression> compression;

  /** Substitutes and originals, for Spring destroys the beans that it has made itself. */
  private final Map<LettuceConnectionFactory, SnuglyLettuceConnectionFactory> replacements =
      new ConcurrentHashMap<>();

  CompressedConnections(Supplier<LettuceCompression> compression) {
    this.compression = compression;
  }

  /**
   * Replaces a factory.
   *
   * @throws ConfigurationException for one whose connections would not compress
   */
  @Override
  public Object postProcessBeforeInitialization(Object bean, String name) {
    if (isReplaced(bean)) {
      LettuceConnectionFactory plain = (LettuceConnectionFactory) bean;
      SnuglyLettuceConnectionFactory replacement = compressing(plain);
      replacements.put(plain, replacement);
      return replacement;
    }
    if (bean instanceof RedisConnectionFactory
        && !(bean instanceof SnuglyLettuceConnectionFactory)) {
      throw new ConfigurationException(
          "snugly.connections is true, but %s is a %s, whose connections do not compress: make it a"
                  .formatted(name, bean.getClass().getSimpleName())
              + " SnuglyLettuceConnectionFactory, or leave the property out, and caches are"
              + " compressed with any client");
    }
    return bean;
  }

  @Override
  public boolean requiresDestruction(Object bean) {
    return isReplaced(bean);
  }

  @Override
  public void postProcessBeforeDestruction(Object bean, String name) {
    SnuglyLettuceConnectionFactory replacement =
        replacements.remove((LettuceConnectionFactory) bean);
    if (replacement != null) { // Else it was never initialized.
      replacement.destroy();
    }
  }

  private static boolean isReplaced(Object bean) {
    return bean.getClass() == LettuceConnectionFactory.class;
  }

  private SnuglyLettuceConnectionFactory compressing(LettuceConnectionFactory plain) {
    DirectFieldAccessor fields = new DirectFieldAccessor(plain);
    SnuglyLettuceConnectionFactory factory =
        new SnuglyLettuceConnectionFactory(
            (RedisConfiguration) fields.getPropertyValue("configuration"),
            plain.getClientConfiguration(),
            compression.get());
    factory.setShareNativeConnection(plain.getShareNativeConnection());
    factory.setValidateConnection(plain.getValidateConnection());
    factory.setEagerInitialization(plain.getEagerInitialization());
    factory.setConvertPipelineAndTxResults(plain.getConvertPipelineAndTxResults());
    factory.setPhase(plain.getPhase());
    factory.setAutoStartup(plain.isAutoStartup());
    factory.setEarlyStartup(plain.isEarlyStartup());
    DirectFieldAccessor target = new DirectFieldAccessor(factory);
    WRITE_ONLY.forEach(each -> target.setPropertyValue(each, fields.getPropertyValue(each)));
    return factory;
  }
}
