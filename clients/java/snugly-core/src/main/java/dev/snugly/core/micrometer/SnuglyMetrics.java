package dev.snugly.core.micrometer;

import dev.snugly.core.Codec;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;

/**
 * Counters of a codec, as function counters: {@code snugly.} and the counter's name, such as {@code
 * snugly.encoded_bytes_out}, with the tag {@code codec} where there is one number for each
 * encoding. Bytes are in bytes, and times in nanoseconds.
 *
 * <pre>{@code
 * new SnuglyMetrics(codec, Tags.of("cache", "pages")).bindTo(registry);
 * }</pre>
 */
public final class SnuglyMetrics implements MeterBinder {
  private final Codec codec;
  private final Tags tags;

  /**
   * @param codec whose numbers to show; the registry does not keep it
   * @param tags what tells it from others, on every meter
   */
  public SnuglyMetrics(Codec codec, Iterable<Tag> tags) {
    this.codec = codec;
    this.tags = Tags.of(tags);
  }

  @Override
  public void bindTo(MeterRegistry registry) {
    for (Counter counter : Counter.values()) {
      if (!counter.isPerEncoding()) {
        register(registry, counter, Encoding.IDENTITY, tags);
        continue;
      }
      for (Encoding encoding : Encoding.values()) {
        register(registry, counter, encoding, tags.and("codec", encoding.toString()));
      }
    }
  }

  private void register(MeterRegistry registry, Counter counter, Encoding encoding, Tags all) {
    FunctionCounter.builder(
            "snugly." + counter, codec, counting -> counting.statistics().of(counter, encoding))
        .description(counter.help())
        .tags(all)
        .register(registry);
  }
}
