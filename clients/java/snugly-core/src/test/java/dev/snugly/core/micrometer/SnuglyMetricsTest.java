package dev.snugly.core.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.junit.jupiter.api.Test;

/** Counters are meters. */
class SnuglyMetricsTest {
  @Test
  void everyCounterIsAMeterWithItsNumber() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    new SnuglyMetrics(codec, Tags.of("cache", "pages")).bindTo(registry);
    codec.encode(new byte[1000]);
    codec.encode(new byte[10]);
    codec.count(Counter.DICTIONARIES_FETCHED);
    assertEquals(
        1000,
        registry
            .get("snugly.encoded_bytes_in")
            .tags("codec", "zstd", "cache", "pages")
            .functionCounter()
            .count());
    assertEquals(1, registry.get("snugly.skipped_small").functionCounter().count());
    assertEquals(1, registry.get("snugly.dictionaries_fetched").functionCounter().count());
    assertEquals(codec.statistics().asMap().size(), registry.getMeters().size());
  }
}
