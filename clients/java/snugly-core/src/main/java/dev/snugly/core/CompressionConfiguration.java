package dev.snugly.core;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Compression settings of a client. Names and defaults are those of Valkey GLIDE where it has them.
 *
 * <p>It is immutable. {@link #defaults()} is zstd, level 3, for strings from 64 bytes on.
 */
public final class CompressionConfiguration {
  /** The least that {@code minCompressionSize} may be, in bytes. */
  public static final int LEAST_MIN_COMPRESSION_SIZE = 6;

  /** The default of {@code maxDecompressedSize}, in bytes: what Redis and Valkey store at most. */
  public static final int DEFAULT_MAX_DECOMPRESSED_SIZE = 512 << 20;

  /** The most that {@code maxDecompressedSize} may be, in bytes: the longest array. */
  public static final int MOST_MAX_DECOMPRESSED_SIZE = Integer.MAX_VALUE - 8;

  /** The default of {@code dictionaryPrefix}. */
  public static final String DEFAULT_DICTIONARY_PREFIX = "{snugly}";

  /** The default of {@code maxReplyBytes}: 1 GiB. */
  public static final long DEFAULT_MAX_REPLY_BYTES = 1L << 30;

  private static final Duration LEAST_REFRESH = Duration.ofMillis(100);
  private static final Duration MOST_REFRESH = Duration.ofDays(1);

  private static final List<Setting> SETTINGS =
      List.of(
          new Setting("enabled", it -> it.enabled),
          new Setting("backend", it -> it.backend),
          new Setting(
              "compressionLevel",
              it -> it.compressionLevel == it.backend.defaultLevel() ? null : it.compressionLevel),
          new Setting("minCompressionSize", it -> it.minCompressionSize),
          new Setting("maxDecompressedSize", it -> it.maxDecompressedSize),
          new Setting("maxReplyBytes", it -> it.maxReplyBytes),
          new Setting("existingEnvelopes", it -> it.existingEnvelopes),
          new Setting("checksum", it -> it.checksum),
          new Setting("onUndecodable", it -> it.onUndecodable),
          new Setting("readGzip", it -> it.readGzip),
          new Setting("valueTypes", it -> it.valueTypes),
          new Setting("exclude", it -> it.exclude),
          new Setting("dictionary", it -> it.dictionary().map(Dictionary::id).orElse(null)),
          new Setting("catalogue", it -> it.catalogue),
          new Setting("dictionaryPrefix", it -> it.dictionaryPrefix),
          new Setting("dictionaryDatabase", it -> it.dictionaryDatabase),
          new Setting("dictionaryRefresh", it -> it.dictionaryRefresh),
          new Setting("dictionaryFolder", it -> it.dictionaryFolder),
          new Setting("dictionaryExclude", it -> it.dictionaryExclude));

  private static final CompressionConfiguration DEFAULTS = builder().build();

  private final boolean enabled;
  private final CompressionBackend backend;
  private final int compressionLevel;
  private final int minCompressionSize;
  private final int maxDecompressedSize;
  private final long maxReplyBytes;
  private final ExistingEnvelopes existingEnvelopes;
  private final boolean checksum;
  private final OnUndecodable onUndecodable;
  private final boolean readGzip;
  private final Set<ValueType> valueTypes;
  private final List<String> exclude;
  private final Dictionary dictionary;
  private final boolean catalogue;
  private final String dictionaryPrefix;
  private final Integer dictionaryDatabase;
  private final Duration dictionaryRefresh;
  private final Path dictionaryFolder;
  private final List<String> dictionaryExclude;

  /** A setting's name and its value, as they are shown. */
  private record Setting(String name, Function<CompressionConfiguration, Object> of) {}

  private CompressionConfiguration(Builder builder) {
    enabled = builder.enabled;
    backend = builder.backend;
    compressionLevel = builder.hasLevel() ? builder.compressionLevel : backend.defaultLevel();
    minCompressionSize = builder.minCompressionSize;
    maxDecompressedSize = builder.maxDecompressedSize;
    maxReplyBytes = builder.maxReplyBytes;
    existingEnvelopes = builder.existingEnvelopes;
    checksum = builder.checksum;
    onUndecodable = builder.onUndecodable;
    readGzip = builder.readGzip;
    Set<ValueType> types = EnumSet.noneOf(ValueType.class);
    types.addAll(builder.valueTypes);
    valueTypes = Collections.unmodifiableSet(types);
    exclude = List.copyOf(builder.exclude);
    dictionary = builder.dictionary;
    catalogue = builder.catalogue && builder.writes();
    dictionaryPrefix = builder.dictionaryPrefix;
    dictionaryDatabase = builder.dictionaryDatabase;
    dictionaryRefresh = builder.dictionaryRefresh;
    dictionaryFolder = builder.dictionaryFolder;
    dictionaryExclude = List.copyOf(builder.dictionaryExclude);
  }

  /** Returns all defaults. */
  public static CompressionConfiguration defaults() {
    return DEFAULTS;
  }

  /** Returns a builder that begins with all defaults. */
  public static Builder builder() {
    return new Builder();
  }

  /** Whether there is any compression; false is the same as no configuration at all. */
  public boolean enabled() {
    return enabled;
  }

  /** Returns what new values are compressed with. */
  public CompressionBackend backend() {
    return backend;
  }

  /** Returns the level, the backend's default where none was given. */
  public int compressionLevel() {
    return compressionLevel;
  }

  /** Returns the length below which values are sent as they are, in bytes. */
  public int minCompressionSize() {
    return minCompressionSize;
  }

  /** Returns the length over which values are neither compressed nor decoded, in bytes. */
  public int maxDecompressedSize() {
    return maxDecompressedSize;
  }

  /** Returns what the values of one reply may be restored to together, in bytes; 0 for any. */
  public long maxReplyBytes() {
    return maxReplyBytes;
  }

  /** Returns what becomes of values that are envelopes already. */
  public ExistingEnvelopes existingEnvelopes() {
    return existingEnvelopes;
  }

  /** Whether zstd frames carry a checksum of the value. */
  public boolean checksum() {
    return checksum;
  }

  /** Returns what a reader gets for what cannot be read. */
  public OnUndecodable onUndecodable() {
    return onUndecodable;
  }

  /** Whether values that are GZIP files are restored, too. */
  public boolean readGzip() {
    return readGzip;
  }

  /** Returns whose values are compressed. */
  public Set<ValueType> valueTypes() {
    return valueTypes;
  }

  /** Returns globs of keys whose values are sent as they are. */
  public List<String> exclude() {
    return exclude;
  }

  /** Returns the dictionary that values are written and read with, if one was given. */
  public Optional<Dictionary> dictionary() {
    return Optional.ofNullable(dictionary);
  }

  /**
   * Whether values are written with the dictionaries that lie beside the data: never with {@link
   * CompressionBackend#NONE}.
   */
  public boolean catalogue() {
    return catalogue;
  }

  /** Returns what the keys of dictionaries begin with. */
  public String dictionaryPrefix() {
    return dictionaryPrefix;
  }

  /** Returns the number of the database that dictionaries live in; empty for the client's own. */
  public OptionalInt dictionaryDatabase() {
    return dictionaryDatabase == null ? OptionalInt.empty() : OptionalInt.of(dictionaryDatabase);
  }

  /** Returns the time between two readings of the catalogue, and until a new dictionary is used. */
  public Duration dictionaryRefresh() {
    return dictionaryRefresh;
  }

  /** Returns where copies of fetched dictionaries are kept, if they are. */
  public Optional<Path> dictionaryFolder() {
    return Optional.ofNullable(dictionaryFolder);
  }

  /** Returns globs of keys whose values are written without a dictionary. */
  public List<String> dictionaryExclude() {
    return dictionaryExclude;
  }

  /** Returns the settings that differ from the defaults, on one line; of a dictionary, its ID. */
  @Override
  public String toString() {
    return SETTINGS.stream()
        .filter(setting -> !Objects.equals(setting.of.apply(this), setting.of.apply(DEFAULTS)))
        .map(setting -> setting.name + "=" + setting.of.apply(this))
        .collect(Collectors.joining(", ", "CompressionConfiguration[", "]"));
  }

  /** Collects settings; {@link #build()} checks them. */
  public static final class Builder {
    private boolean enabled = true;
    private CompressionBackend backend = CompressionBackend.ZSTD;
    private Integer compressionLevel;
    private int minCompressionSize = 64;
    private int maxDecompressedSize = DEFAULT_MAX_DECOMPRESSED_SIZE;
    private long maxReplyBytes = DEFAULT_MAX_REPLY_BYTES;
    private ExistingEnvelopes existingEnvelopes = ExistingEnvelopes.KEEP;
    private boolean checksum;
    private OnUndecodable onUndecodable = OnUndecodable.RAISE;
    private boolean readGzip;
    private Collection<ValueType> valueTypes = Set.of(ValueType.STRINGS);
    private List<String> exclude = List.of();
    private Dictionary dictionary;
    private boolean catalogue;
    private String dictionaryPrefix = DEFAULT_DICTIONARY_PREFIX;
    private Integer dictionaryDatabase;
    private Duration dictionaryRefresh = Duration.ofSeconds(60);
    private Path dictionaryFolder;
    private List<String> dictionaryExclude = List.of();

    private Builder() {}

    /**
     * Sets whether there is any compression.
     *
     * @param enabled false is the same as no configuration at all; default true
     * @return this
     */
    public Builder enabled(boolean enabled) {
      this.enabled = enabled;
      return this;
    }

    /**
     * Sets what new values are compressed with.
     *
     * @param backend default {@link CompressionBackend#ZSTD}
     * @return this
     */
    public Builder backend(CompressionBackend backend) {
      this.backend = backend;
      return this;
    }

    /**
     * Sets how hard to compress: lower is faster, higher smaller.
     *
     * @param level zstd -131072 to 22, default 3; lz4 -128 to 12, default 0; any with {@link
     *     CompressionBackend#NONE}, which has no use for it
     * @return this
     */
    public Builder compressionLevel(int level) {
      this.compressionLevel = level;
      return this;
    }

    /**
     * Sets the length below which values are sent as they are. Values under 32 bytes always are.
     *
     * @param bytes from 6; default 64
     * @return this
     */
    public Builder minCompressionSize(int bytes) {
      this.minCompressionSize = bytes;
      return this;
    }

    /**
     * Sets the length over which values are neither compressed nor decoded.
     *
     * @param bytes from 1; default 512 MiB
     * @return this
     */
    public Builder maxDecompressedSize(int bytes) {
      this.maxDecompressedSize = bytes;
      return this;
    }

    /**
     * Sets what the values of one reply may be restored to together: of a command or a transaction,
     * and in Jedis and valkey-java of all that came with one pipeline. What goes beyond cannot be
     * read: {@link UndecodableException.Kind#TOO_LARGE}.
     *
     * @param bytes 0 for any number; default 1 GiB
     * @return this
     */
    public Builder maxReplyBytes(long bytes) {
      this.maxReplyBytes = bytes;
      return this;
    }

    /**
     * Sets what becomes of values that are envelopes already.
     *
     * @param existingEnvelopes default {@link ExistingEnvelopes#KEEP}
     * @return this
     */
    public Builder existingEnvelopes(ExistingEnvelopes existingEnvelopes) {
      this.existingEnvelopes = existingEnvelopes;
      return this;
    }

    /**
     * Sets whether zstd frames carry a checksum of the value, 4 bytes.
     *
     * @param checksum default false
     * @return this
     */
    public Builder checksum(boolean checksum) {
      this.checksum = checksum;
      return this;
    }

    /**
     * Sets what a reader gets for what cannot be read.
     *
     * @param onUndecodable default {@link OnUndecodable#RAISE}
     * @return this
     */
    public Builder onUndecodable(OnUndecodable onUndecodable) {
      this.onUndecodable = onUndecodable;
      return this;
    }

    /**
     * Sets whether values that are GZIP files are restored, as Lettuce's {@code CompressionCodec}
     * and serializers of applications have written them: in clients in the replies to all commands,
     * whatever the types of values that are compressed. Nothing is written so. Leave it off where
     * GZIP files are values themselves.
     *
     * @param readGzip default false
     * @return this
     */
    public Builder readGzip(boolean readGzip) {
      this.readGzip = readGzip;
      return this;
    }

    /**
     * Sets whose values are compressed.
     *
     * @param valueTypes some of them; default strings only
     * @return this
     */
    public Builder valueTypes(Collection<ValueType> valueTypes) {
      this.valueTypes = valueTypes;
      return this;
    }

    /**
     * Sets globs of keys, as those of KEYS on bytes, whose values are sent as they are: locks and
     * tokens that scripts compare. What looks like an envelope is encoded there, too, and reading
     * has no exception.
     *
     * @param globs default none
     * @return this
     */
    public Builder exclude(List<String> globs) {
      this.exclude = globs;
      return this;
    }

    /**
     * Sets one dictionary that all values are written with, whatever their keys: in envelopes of
     * backend 81 or, with {@link CompressionBackend#LZ4}, 82, which all readers must know. Clients
     * put it beside the data. What others wrote with a dictionary is read in any case. With {@link
     * CompressionBackend#NONE} it is for reading only.
     *
     * @param dictionary null, the default, for none
     * @return this
     */
    public Builder dictionary(Dictionary dictionary) {
      this.dictionary = dictionary;
      return this;
    }

    /**
     * Sets whether values are written with the dictionaries that lie beside the data: in envelopes
     * of backend 81 or, with {@link CompressionBackend#LZ4}, 82, which all readers must know.
     * {@link CompressionBackend#NONE} has no use for it.
     *
     * @param catalogue default false
     * @return this
     */
    public Builder catalogue(boolean catalogue) {
      this.catalogue = catalogue;
      return this;
    }

    /**
     * Sets what the keys of dictionaries begin with.
     *
     * @param prefix not empty; default {@code {snugly}}, whose hash tag keeps them in one slot
     * @return this
     */
    public Builder dictionaryPrefix(String prefix) {
      this.dictionaryPrefix = prefix;
      return this;
    }

    /**
     * Sets the database that dictionaries live in, for clients of several databases that share
     * them. A cluster has one database, and clients of clusters refuse this.
     *
     * @param number from 0; default the client's own
     * @return this
     */
    public Builder dictionaryDatabase(int number) {
      this.dictionaryDatabase = number;
      return this;
    }

    /**
     * Sets the time between two readings of the catalogue, and from the publication of a dictionary
     * to its first use: the same for all of a fleet.
     *
     * @param refresh from 100 ms to a day; default 60 seconds
     * @return this
     */
    public Builder dictionaryRefresh(Duration refresh) {
      this.dictionaryRefresh = refresh;
      return this;
    }

    /**
     * Sets a folder in which copies of fetched dictionaries are kept.
     *
     * @param folder null, the default, for none
     * @return this
     */
    public Builder dictionaryFolder(Path folder) {
      this.dictionaryFolder = folder;
      return this;
    }

    /**
     * Sets globs of keys, as those of KEYS, whose values are written without a dictionary.
     *
     * @param globs default none
     * @return this
     */
    public Builder dictionaryExclude(List<String> globs) {
      this.dictionaryExclude = globs;
      return this;
    }

    /**
     * Makes the configuration.
     *
     * @return what was set
     * @throws ConfigurationException for a setting that may not be; the message says what may
     */
    public CompressionConfiguration build() {
      given("backend", backend);
      given("existingEnvelopes", existingEnvelopes);
      given("onUndecodable", onUndecodable);
      given("dictionaryPrefix", dictionaryPrefix);
      given("dictionaryRefresh", dictionaryRefresh);
      given("valueTypes", valueTypes);
      given("exclude", exclude);
      given("dictionaryExclude", dictionaryExclude);
      if (hasLevel()) {
        inRange(
            "compressionLevel",
            compressionLevel,
            backend.lowestLevel(),
            backend.highestLevel(),
            "for " + backend + " ");
      }
      inRange(
          "minCompressionSize",
          minCompressionSize,
          LEAST_MIN_COMPRESSION_SIZE,
          MOST_MAX_DECOMPRESSED_SIZE,
          "");
      inRange("maxDecompressedSize", maxDecompressedSize, 1, MOST_MAX_DECOMPRESSED_SIZE, "");
      if (maxReplyBytes < 0) {
        throw new ConfigurationException(
            "maxReplyBytes is " + maxReplyBytes + ": it is a number of bytes, or 0 for any");
      }
      if (valueTypes.isEmpty()) {
        throw new ConfigurationException(
            "valueTypes is empty: give some of ValueType, or enabled(false)");
      }
      checkGlobs("exclude", exclude);
      checkGlobs("dictionaryExclude", dictionaryExclude);
      checkDictionaries();
      return new CompressionConfiguration(this);
    }

    /**
     * Whether values are compressed: who goes back to NONE changes the backend and nothing else.
     */
    private boolean writes() {
      return backend != CompressionBackend.NONE;
    }

    private boolean hasLevel() {
      return compressionLevel != null && writes();
    }

    private void checkDictionaries() {
      if (dictionary != null && catalogue) {
        throw new ConfigurationException(
            "there is a dictionary, and the catalogue is to choose one: give one of both");
      }
      if (dictionaryDatabase != null && dictionaryDatabase < 0) {
        throw new ConfigurationException(
            "dictionaryDatabase is "
                + dictionaryDatabase
                + ": it is the number of a database, from 0");
      }
      if (dictionaryPrefix.isEmpty()) {
        throw new ConfigurationException("dictionaryPrefix is empty: give some text");
      }
      if (dictionaryRefresh.compareTo(LEAST_REFRESH) < 0
          || dictionaryRefresh.compareTo(MOST_REFRESH) > 0) {
        throw new ConfigurationException(
            "dictionaryRefresh is "
                + dictionaryRefresh
                + ": it is a time from "
                + LEAST_REFRESH
                + " to "
                + MOST_REFRESH);
      }
    }

    private static void checkGlobs(String name, List<String> globs) {
      for (String glob : globs) {
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(glob)) {
          throw new ConfigurationException(name + " has a glob that is no text: " + glob);
        }
      }
    }

    private static void given(String name, Object value) {
      if (value == null) {
        throw new ConfigurationException(name + " is null: leave it out for the default");
      }
    }

    private static void inRange(String name, int value, int lowest, int highest, String whose) {
      if (value < lowest || value > highest) {
        throw new ConfigurationException(
            name
                + " is "
                + value
                + ": "
                + whose
                + "it is a number from "
                + lowest
                + " to "
                + highest);
      }
    }
  }
}
