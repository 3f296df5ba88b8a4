package dev.snugly.lettuce;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Executor;

/** Settings of how a Lettuce client compresses, and where it decompresses. They are immutable. */
public final class LettuceCompression {
  /** The default of {@code eventLoopBytes}: decoding that takes as long as handing it over. */
  public static final int DEFAULT_EVENT_LOOP_BYTES = 16 << 10;

  private final CompressionConfiguration configuration;
  private final int eventLoopBytes;
  private final Executor decodeExecutor;

  private LettuceCompression(Builder builder) {
    configuration = builder.configuration;
    eventLoopBytes = builder.eventLoopBytes;
    decodeExecutor = builder.decodeExecutor;
  }

  /**
   * All defaults for this configuration.
   *
   * @param configuration how to encode and decode
   * @return what the clients take
   */
  public static LettuceCompression of(CompressionConfiguration configuration) {
    return builder(configuration).build();
  }

  /**
   * Begins with all defaults.
   *
   * @param configuration how to encode and decode
   * @return a builder
   */
  public static Builder builder(CompressionConfiguration configuration) {
    return new Builder(configuration);
  }

  /** Returns how values are encoded and decoded. */
  public CompressionConfiguration configuration() {
    return configuration;
  }

  /** Returns up to how many bytes, decoded, of one reply are decoded on the event loop. */
  public int eventLoopBytes() {
    return eventLoopBytes;
  }

  /** Returns what decodes longer replies, or empty for threads of each client's own. */
  public Optional<Executor> decodeExecutor() {
    return Optional.ofNullable(decodeExecutor);
  }

  /** Returns the settings that differ from the defaults, on one line. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("LettuceCompression[").append(configuration);
    if (eventLoopBytes != DEFAULT_EVENT_LOOP_BYTES) {
      text.append(", eventLoopBytes=").append(eventLoopBytes);
    }
    if (decodeExecutor != null) {
      text.append(", decodeExecutor=").append(decodeExecutor);
    }
    return text.append("]").toString();
  }

  /** Collects settings. */
  public static final class Builder {
    private final CompressionConfiguration configuration;
    private int eventLoopBytes = DEFAULT_EVENT_LOOP_BYTES;
    private Executor decodeExecutor;

    private Builder(CompressionConfiguration configuration) {
      this.configuration = Objects.requireNonNull(configuration, "configuration");
    }

    /**
     * Sets up to how many bytes, decoded, of one reply are decoded on the event loop. While it
     * decodes, no other reply of its connections is read. What does not say its length is longer.
     *
     * @param bytes from 0, with which nothing is decoded there; default 16 KiB
     * @return this
     */
    public Builder eventLoopBytes(int bytes) {
      this.eventLoopBytes = bytes;
      return this;
    }

    /**
     * Sets what decodes longer replies, for one client or several.
     *
     * @param executor default daemon threads of each client's own, as many as there are processors
     * @return this
     */
    public Builder decodeExecutor(Executor executor) {
      this.decodeExecutor = Objects.requireNonNull(executor, "executor");
      return this;
    }

    /**
     * Makes the settings.
     *
     * @return what was set
     * @throws ConfigurationException for a setting that may not be; the message says what may
     */
    public LettuceCompression build() {
      if (eventLoopBytes < 0) {
        throw new ConfigurationException(
            "eventLoopBytes is " + eventLoopBytes + ": it is a number from 0");
      }
      return new LettuceCompression(this);
    }
  }
}
