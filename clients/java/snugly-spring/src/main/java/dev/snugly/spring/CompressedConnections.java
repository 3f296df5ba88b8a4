package dev.snugly.spring;

import dev.snugly.lettuce.LettuceCompression;
import java.util.List;
import java.util.function.Supplier;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Has a {@link SnuglyLettuceConnectionFactory} take the place of each factory of Lettuce's
 * connections, with all of its settings, before it is initialized.
 */
final class CompressedConnections implements BeanPostProcessor {
  /** Settings that can be set and not be asked for. */
  private static final List<String> WRITE_ONLY = List.of("executor", "pipeliningFlushPolicy");

  private final Supplier<LettuceCompression> compression;

  CompressedConnections(Supplier<LettuceCompression> compression) {
    this.compression = compression;
  }

  @Override
  public Object postProcessBeforeInitialization(Object bean, String name) {
    return bean.getClass() == LettuceConnectionFactory.class
        ? compressing((LettuceConnectionFactory) bean)
        : bean;
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
