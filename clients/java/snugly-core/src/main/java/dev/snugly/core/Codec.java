package dev.snugly.core;

import dev.snugly.core.UndecodableException.Kind;
import java.lang.System.Logger.Level;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Encodes and decodes values as a {@link CompressionConfiguration} says, for any number of threads:
 * for clients, caching libraries and tools.
 *
 * <pre>{@code
 * Codec codec = new Codec(CompressionConfiguration.defaults());
 * byte[] stored = codec.encode(page);
 * byte[] again = codec.decode(stored);
 * }</pre>
 */
public final class Codec {
  /** Shorter values are sent as they are, whatever the configuration: numbers are shorter. */
  public static final int LEAST_COMPRESSED = 32;

  /** A payload with any backend is at most this longer than the value, and a 255th of it. */
  private static final int MOST_OVERHEAD = 64 + Envelope.HEADER_BYTES;

  private static final System.Logger LOGGER = System.getLogger("dev.snugly");

  /** Stands for a value that cannot be read and is to be missed. */
  private static final byte[] MISSED = new byte[0];

  private final CompressionConfiguration configuration;
  private final int threshold;

  /** Keys whose values are sent as they are. */
  private final List<Glob> excluded;

  /** Encoding of new values that are written without a dictionary. */
  private final Encoding plain;

  private final int level;

  /** One, at most {@link #level}, that finds out cheaply whether a value compresses at all. */
  private final int probeLevel;

  private final Dictionaries dictionaries;
  private final Misses misses;
  private final Counters counters = new Counters();

  /** Memory of what was worth an attempt: whoever holds a {@link Workspace} has one to itself. */
  private final Policy[] policies = new Policy[Workspaces.COUNT];

  /**
   * A codec of its own, with the configuration's dictionary if it has one.
   *
   * @param configuration {@code enabled(false)} is the same as the backend {@code NONE}: nothing is
   *     compressed, everything is read
   * @throws ConfigurationException for a configuration with {@code catalogue(true)}, which is for
   *     clients
   */
  public Codec(CompressionConfiguration configuration) {
    this(configuration, given(configuration));
  }

  /**
   * A codec with dictionaries that somebody maintains.
   *
   * @param configuration how to encode and decode
   * @param dictionaries what is at hand
   */
  public Codec(CompressionConfiguration configuration, Dictionaries dictionaries) {
    this(
        configuration,
        dictionaries,
        new Misses(System::nanoTime, text -> LOGGER.log(Level.WARNING, text)));
  }

  /** The same, which tells of misses by another clock or elsewhere. */
  Codec(CompressionConfiguration configuration, Dictionaries dictionaries, Misses misses) {
    this.configuration = configuration;
    this.dictionaries = dictionaries;
    this.misses = misses;
    excluded = Glob.all(configuration.exclude());
    threshold = Math.max(configuration.minCompressionSize(), LEAST_COMPRESSED);
    plain = configuration.enabled() ? plain(configuration.backend()) : Encoding.IDENTITY;
    level =
        plain == Encoding.IDENTITY
            ? CompressionBackend.ZSTD.defaultLevel()
            : configuration.compressionLevel();
    probeLevel = Math.min(level, configuration.backend().probeLevel());
  }

  private static Encoding plain(CompressionBackend backend) {
    return switch (backend) {
      case ZSTD -> Encoding.ZSTD;
      case LZ4 -> Encoding.LZ4;
      case NONE -> Encoding.IDENTITY;
    };
  }

  private static Dictionaries given(CompressionConfiguration configuration) {
    if (Objects.requireNonNull(configuration, "configuration").catalogue()) {
      throw new ConfigurationException(
          "the configuration has catalogue(true), which only clients can read: give a dictionary");
    }
    return configuration.dictionary().map(Dictionaries::of).orElse(Dictionaries.NONE);
  }

  /**
   * Returns this codec, for those who do not know the keys of values.
   *
   * @param who those who do not, for the message
   * @return this
   * @throws ConfigurationException if the configuration has an {@code exclude}, which needs keys
   */
  public Codec forValuesWithoutKeys(String who) {
    if (!excluded.isEmpty()) {
      throw new ConfigurationException(
          "exclude is %s, but %s does not know the keys of values: leave it out, or give it to a"
                  .formatted(configuration.exclude(), who)
              + " client");
    }
    return this;
  }

  /** Returns how this codec encodes and decodes. */
  public CompressionConfiguration configuration() {
    return configuration;
  }

  /** Returns what this codec has counted since it was made. */
  public Statistics statistics() {
    return counters.snapshot();
  }

  /**
   * Counts one for what was done for this codec elsewhere: dictionaries that were fetched, say.
   *
   * @param counter one that has no number for each encoding
   */
  public void count(Counter counter) {
    counters.increment(counter);
  }

  /**
   * Returns the room that {@link #encode(ByteBuffer, byte[], ByteBuffer)} needs.
   *
   * @param size a value's length, in bytes
   * @return the most that it can become, in bytes
   * @throws IllegalArgumentException for a value for which no buffer can be large enough
   */
  public static int maxEncodedSize(int size) {
    long most = mostEncoded(size);
    if (size < 0 || most > CompressionConfiguration.MOST_MAX_DECOMPRESSED_SIZE) {
      throw new IllegalArgumentException("no buffer has room for a value of " + size + " bytes");
    }
    return (int) most;
  }

  private static long mostEncoded(int size) {
    return (long) size + size / 255 + MOST_OVERHEAD;
  }

  /**
   * As {@link #encode(byte[], byte[])}, for a value whose key nobody knows.
   *
   * @param value any bytes
   * @return the bytes to store
   */
  public byte[] encode(byte[] value) {
    return encode(value, null);
  }

  /**
   * Encodes a value. Never fails: what cannot be compressed is returned as it is, and counted.
   *
   * @param value any bytes
   * @param key the value's key, which decides about dictionaries and {@code exclude}, or null
   * @return the bytes to store: an envelope, or {@code value} itself where that gains nothing
   */
  public byte[] encode(byte[] value, byte[] key) {
    Workspace workspace = Workspaces.acquire();
    try {
      int length = encode(workspace, Bytes.of(value, value.length), key, null);
      return length < 0 ? value : Arrays.copyOf(workspace.scratch(length), length);
    } finally {
      workspace.release();
    }
  }

  /**
   * Encodes a value from one buffer to another, heap or direct. Never fails: what cannot be
   * compressed is copied as it is, and counted.
   *
   * @param value any bytes, from its position to its limit, to which the position moves
   * @param key the value's key, which decides about dictionaries and {@code exclude}, or null
   * @param target where the bytes to store are put; its position moves behind them
   * @throws BufferOverflowException if the target has less room than {@link #maxEncodedSize} says
   * @throws ReadOnlyBufferException if the target cannot be written to
   */
  public void encode(ByteBuffer value, byte[] key, ByteBuffer target) {
    if (target.isReadOnly()) {
      throw new ReadOnlyBufferException();
    }
    if (target.remaining() < mostEncoded(value.remaining())) {
      throw new BufferOverflowException();
    }
    Workspace workspace = Workspaces.acquire();
    try {
      int length = encode(workspace, Bytes.of(value), key, Bytes.of(target));
      if (length < 0) {
        target.put(value);
      } else {
        target.position(target.position() + length);
        value.position(value.limit());
      }
    } finally {
      workspace.release();
    }
  }

  /**
   * Puts the value's envelope at the start of the target or, without one, of the workspace's
   * scratch. Returns its length, or -1 if the value is to be sent as it is.
   */
  private int encode(Workspace workspace, Bytes value, byte[] key, Bytes target) {
    long started = workspace.isTimed() ? System.nanoTime() : 0;
    int size = value.size();
    int marked = Envelope.backendOf(value);
    int length;
    Encoding encoding = Encoding.IDENTITY;
    if (marked < 0 && isExcluded(key)) {
      length = -1;
    } else if (marked < 0) {
      Dictionary dictionary = dictionaryFor(workspace, size, key);
      encoding = dictionary == null ? plain : plain.withDictionary();
      length = encodeIfWorthIt(workspace, encoding, dictionary, value, target);
    } else if (configuration.existingEnvelopes() == ExistingEnvelopes.KEEP
        && Envelope.isWellFormed(value, marked, Limit.of(configuration, null))) {
      counters.increment(workspace, Counter.SKIPPED_COMPRESSED);
      length = -1;
    } else {
      encoding = plain == Encoding.LZ4 ? Encoding.LZ4 : Encoding.ZSTD;
      length = attempt(workspace, encoding, level, null, value, target);
    }
    counters.encoded(
        workspace, length < 0 ? Encoding.IDENTITY : encoding, size, length < 0 ? size : length);
    if (started != 0) {
      count(workspace, Counter.ENCODE_NANOSECONDS, started);
    }
    return length;
  }

  private boolean isExcluded(byte[] key) {
    return key != null && Glob.anyMatches(excluded, key);
  }

  private Dictionary dictionaryFor(Workspace workspace, int size, byte[] key) {
    if (plain == Encoding.IDENTITY || size < threshold) {
      return null;
    }
    try {
      return dictionaries.forKey(key);
    } catch (RuntimeException | OutOfMemoryError error) {
      counters.increment(workspace, Counter.ENCODE_FAILURES);
      return null;
    }
  }

  private int encodeIfWorthIt(
      Workspace workspace, Encoding encoding, Dictionary dictionary, Bytes value, Bytes target) {
    int size = value.size();
    if (encoding == Encoding.IDENTITY) {
      return -1;
    }
    if (size < threshold) {
      counters.increment(workspace, Counter.SKIPPED_SMALL);
      return -1;
    }
    if (size > configuration.maxDecompressedSize()) {
      counters.increment(workspace, Counter.SKIPPED_LARGE);
      return -1;
    }
    return encodeIfItShrinks(workspace, encoding, dictionary, value, target);
  }

  private int encodeIfItShrinks(
      Workspace workspace, Encoding encoding, Dictionary dictionary, Bytes value, Bytes target) {
    int size = value.size();
    Policy policy = policyOf(workspace);
    Policy.Verdict verdict = policy.consider(value, dictionary != null);
    if (verdict.skipped != null) {
      counters.increment(workspace, verdict.skipped);
      return -1;
    }
    // A dictionary has tables for each level: those for a fast one would cost time and memory.
    boolean isProbed = verdict == Policy.Verdict.DOUBTFUL && dictionary == null;
    int first = isProbed ? probeLevel : level;
    int length = attempt(workspace, encoding, first, dictionary, value, target);
    if (length < 0) {
      return -1;
    }
    policy.report(length < size);
    if (length < size && first != level) {
      length = attempt(workspace, encoding, level, dictionary, value, target);
    }
    if (length >= size) {
      counters.increment(workspace, Counter.SKIPPED_NO_GAIN);
      return -1;
    }
    return length;
  }

  /** The holder's memory, which ends with a workspace that is thrown away. */
  private Policy policyOf(Workspace holder) {
    if (holder.index == Workspaces.COUNT) {
      return new Policy();
    }
    if (policies[holder.index] == null) {
      policies[holder.index] = new Policy();
    }
    return policies[holder.index];
  }

  /** The length of the envelope, even if that is more than the value's; -1 if it fails. */
  private int attempt(
      Workspace workspace,
      Encoding encoding,
      int level,
      Dictionary dictionary,
      Bytes value,
      Bytes target) {
    try {
      Bytes room = target != null ? target : scratch(workspace, value.size());
      Envelope.putHeader(room, room.start, encoding);
      int payload = room.start + Envelope.HEADER_BYTES;
      return Envelope.HEADER_BYTES
          + switch (encoding) {
            case LZ4 -> Lz4.compress(workspace, level, value, room, payload);
            case LZ4_DICTIONARY ->
                Lz4Dictionary.compress(workspace, level, dictionary, value, room, payload);
            default ->
                Zstd.compress(
                    workspace, level, configuration.checksum(), dictionary, value, room, payload);
          };
    } catch (RuntimeException | OutOfMemoryError | LinkageError error) {
      counters.increment(workspace, Counter.ENCODE_FAILURES);
      return -1;
    }
  }

  private static Bytes scratch(Workspace workspace, int size) {
    byte[] scratch = workspace.scratch(maxEncodedSize(size));
    return Bytes.of(scratch, scratch.length);
  }

  /**
   * As {@link #decode(byte[], byte[])}, for a value whose key nobody knows.
   *
   * @param stored what a server has
   * @return the value
   * @throws UndecodableException for what cannot be read
   */
  public byte[] decode(byte[] stored) {
    return decode(stored, null);
  }

  /**
   * Decodes what is stored.
   *
   * @param stored what a server has
   * @param key where it was read from, for the message of an error, or null
   * @return the value: {@code stored} itself if that is neither an envelope nor, where these are
   *     read, a GZIP file; with {@link OnUndecodable#MISS} null for what cannot be read
   * @throws UndecodableException for what cannot be read
   */
  public byte[] decode(byte[] stored, byte[] key) {
    return decode(stored, key, null);
  }

  /**
   * As {@link #decode(byte[], byte[])}, for one of the values of a reply.
   *
   * @param stored what a server has
   * @param key where it was read from, for the message of an error, or null
   * @param reply what its values may take together, or null for any number of bytes
   * @return the value, as above
   * @throws UndecodableException for what cannot be read
   */
  public byte[] decode(byte[] stored, byte[] key, Budget reply) {
    byte[] value = decode(Bytes.of(stored, stored.length), stored, key, reply);
    if (value == MISSED) {
      return null;
    }
    return value == null ? stored : value;
  }

  /**
   * Decodes what is stored in a buffer, heap or direct.
   *
   * @param stored what a server has, from its position to its limit; both stay
   * @param key where it was read from, for the message of an error, or null
   * @return the value, in an array of its own: {@code stored} itself if that is neither an envelope
   *     nor, where these are read, a GZIP file; with {@link OnUndecodable#MISS} null for what
   *     cannot be read
   * @throws UndecodableException for what cannot be read
   */
  public ByteBuffer decode(ByteBuffer stored, byte[] key) {
    byte[] value = decode(Bytes.of(stored), null, key, null);
    if (value == MISSED) {
      return null;
    }
    return value == null ? stored : ByteBuffer.wrap(value);
  }

  /** The value, {@link #MISSED}, or null if what is stored is the value. */
  private byte[] decode(Bytes bytes, byte[] stored, byte[] key, Budget reply) {
    try {
      try {
        return attempt(bytes, reply);
      } catch (Fault fault) {
        if (fault.kind != Kind.DICTIONARY_MISSING) {
          throw fault;
        }
        counters.increment(Counter.DICTIONARY_MISSES);
        Budget waiting = reply == null ? new Budget(configuration) : reply;
        if (!dictionaries.fetch(fault.dictionary, waiting)) {
          throw dictionaries.isAllowed()
              ? fault
              : Fault.dictionaryDenied(fault.dictionary, configuration.dictionaryPrefix());
        }
        return attempt(bytes, reply);
      }
    } catch (Fault fault) {
      counters.increment(Counter.DECODE_FAILURES);
      // Lack of memory is raised whatever the setting: it says nothing of the value.
      OnUndecodable asked =
          fault.kind == Kind.OUT_OF_MEMORY ? OnUndecodable.RAISE : configuration.onUndecodable();
      return switch (asked) {
        case RAW -> null;
        case MISS -> missed(fault, key, stored, bytes);
        case RAISE -> throw new UndecodableException(fault, key, whole(stored, bytes));
      };
    }
  }

  private byte[] missed(Fault fault, byte[] key, byte[] stored, Bytes bytes) {
    misses.note(() -> UndecodableException.message(fault, key, whole(stored, bytes)));
    return MISSED;
  }

  /** What is stored, which is copied where it is in a buffer. */
  private static byte[] whole(byte[] stored, Bytes bytes) {
    return stored != null ? stored : bytes.copy();
  }

  private byte[] attempt(Bytes bytes, Budget reply) throws Fault {
    Workspace workspace = Workspaces.acquire();
    try {
      long started = workspace.isTimed() ? System.nanoTime() : 0;
      int backend = Envelope.backendOf(bytes);
      byte[] value = null;
      Encoding encoding = Encoding.IDENTITY;
      if (backend >= 0) {
        encoding = Encoding.ofBackend(backend);
        value = restored(workspace, bytes, encoding, Limit.of(configuration, reply));
      } else if (configuration.readGzip() && Gzip.begins(bytes)) {
        value = Gzip.decompress(bytes, Limit.of(configuration, reply));
      }
      if (reply != null && value != null) {
        reply.take(value.length);
      }
      int size = bytes.size();
      counters.decoded(workspace, encoding, size, value == null ? size : value.length);
      if (started != 0) {
        count(workspace, Counter.DECODE_NANOSECONDS, started);
      }
      return value;
    } finally {
      workspace.release();
    }
  }

  /**
   * Returns the ID of the dictionary that is looked for to restore a value, unsigned; 0 if it needs
   * none, or cannot be read with any.
   *
   * @param stored what a server has
   */
  public int dictionaryOf(byte[] stored) {
    return Envelope.dictionaryOf(Bytes.of(stored, stored.length), Limit.of(configuration, null));
  }

  private byte[] restored(Workspace workspace, Bytes bytes, Encoding encoding, Limit limit)
      throws Fault {
    int payload = bytes.start + Envelope.HEADER_BYTES;
    if (encoding == null) {
      throw Fault.unknownBackend();
    }
    if (encoding == Encoding.LZ4) {
      return Lz4.decompress(bytes, payload, limit);
    }
    if (encoding == Encoding.LZ4_DICTIONARY) {
      Dictionary dictionary = atHand(Lz4Dictionary.check(bytes, payload, limit));
      return Lz4Dictionary.decompress(bytes, payload, dictionary);
    }
    ZstdFrame frame = ZstdFrame.header(bytes, payload);
    if (encoding == Encoding.ZSTD_DICTIONARY && frame.dictionary == 0) {
      throw Fault.corrupt("it does not say which dictionary it needs");
    }
    long reach = frame.reach(bytes);
    Dictionary dictionary = encoding == Encoding.ZSTD_DICTIONARY ? atHand(frame.dictionary) : null;
    return Zstd.decompress(workspace, bytes, payload, frame, reach, dictionary, limit);
  }

  private Dictionary atHand(int id) throws Fault {
    Dictionary dictionary = dictionaries.find(id);
    if (dictionary == null) {
      throw Fault.dictionaryMissing(id);
    }
    return dictionary;
  }

  private void count(Workspace workspace, Counter counter, long started) {
    long elapsed = System.nanoTime() - started;
    counters.add(workspace, counter, Encoding.IDENTITY, elapsed * Workspace.TIMED);
  }
}
