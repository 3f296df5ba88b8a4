package dev.snugly.core;

import java.util.Locale;

/** Counters of a codec, under the names that snugly's server and its other clients have. */
@SuppressWarnings("EnumOrdinal") // The numbers lie in an array, which nobody stores.
public enum Counter {
  /** Values stored under this codec. */
  ENCODED_VALUES(true, "values stored under this codec"),
  /** Bytes of these values before encoding. */
  ENCODED_BYTES_IN(true, "bytes of these values before encoding"),
  /** Bytes of these values after encoding. */
  ENCODED_BYTES_OUT(true, "bytes of these values after encoding"),
  /** Values read back from this codec. */
  DECODED_VALUES(true, "values read back from this codec"),
  /** Bytes of these values before decoding. */
  DECODED_BYTES_IN(true, "bytes of these values before decoding"),
  /** Bytes of these values after decoding. */
  DECODED_BYTES_OUT(true, "bytes of these values after decoding"),
  /** Values left alone because they are shorter than the threshold. */
  SKIPPED_SMALL(false, "values left alone because they are shorter than the threshold"),
  /** Values left alone because they are longer than readers accept. */
  SKIPPED_LARGE(false, "values left alone because they are longer than readers accept"),
  /** Values left alone because they are compressed already, or look random. */
  SKIPPED_COMPRESSED(
      false, "values left alone because they are compressed already, or look random"),
  /** Values left alone because compressing them gains nothing. */
  SKIPPED_NO_GAIN(false, "values left alone because compressing them gains nothing"),
  /** Values left alone because compressing them failed. */
  ENCODE_FAILURES(false, "values left alone because compressing them failed"),
  /** Values that could not be read back. */
  DECODE_FAILURES(false, "values that could not be read back"),
  /** Values read back with a dictionary that was at hand. */
  DICTIONARY_HITS(false, "values read back with a dictionary that was at hand"),
  /** Values whose dictionary was not at hand when they were read. */
  DICTIONARY_MISSES(false, "values whose dictionary was not at hand when they were read"),
  /** Time spent encoding in nanoseconds, estimated from a sample. */
  ENCODE_NANOSECONDS(false, "time spent encoding, estimated from a sample"),
  /** Time spent decoding in nanoseconds, estimated from a sample. */
  DECODE_NANOSECONDS(false, "time spent decoding, estimated from a sample"),
  /** Dictionaries that were fetched from a server or a folder. */
  DICTIONARIES_FETCHED(false, "dictionaries that were fetched from a server or a folder"),
  /** Dictionaries that were not in the server any more and were put back. */
  DICTIONARIES_PUT_BACK(
      false, "dictionaries that were not in the server any more and were put back"),
  /** Keys of dictionaries that had something else and were overwritten. */
  DICTIONARIES_MENDED(false, "keys of dictionaries that had something else and were overwritten");

  /** Number of those that have a number for each encoding; they come first. */
  private static final int PER_ENCODING = DECODED_BYTES_OUT.ordinal() + 1;

  /** Offset of the numbers that all encodings share, less their first ordinal. */
  private static final int SHARED = (Encoding.values().length - 1) * PER_ENCODING;

  /** Number of numbers. */
  static final int CELLS = SHARED + values().length;

  private final boolean isPerEncoding;
  private final String help;

  Counter(boolean isPerEncoding, String help) {
    this.isPerEncoding = isPerEncoding;
    this.help = help;
  }

  /** Whether there is one number for each {@link Encoding}. */
  public boolean isPerEncoding() {
    return isPerEncoding;
  }

  /** Returns what is counted, in words. */
  public String help() {
    return help;
  }

  /** Returns the name in the server and in metrics, such as {@code encoded_bytes_out}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * Returns where the number for this encoding is; the encoding counts only if each has one. Those
   * of one encoding lie side by side, so that counting a value touches one place in memory.
   */
  int cell(Encoding encoding) {
    return ordinal() + (isPerEncoding ? encoding.ordinal() * PER_ENCODING : SHARED);
  }
}
