package dev.snugly.core;

/** Bytes that are no dictionary; the message says why. */
public final class DictionaryException extends ConfigurationException {
  private static final long serialVersionUID = 1L;

  /** Kinds of what is wrong with the bytes. */
  public enum Kind {
    /** They are no full zstd dictionary, or cannot be read. */
    NOT_A_DICTIONARY,
    /** The ID is not that of the content. */
    WRONG_ID,
    /** They are longer than {@link Dictionary#MAX_BYTES}. */
    TOO_LARGE,
  }

  private final Kind kind;

  DictionaryException(Kind kind, String message) {
    super(message);
    this.kind = kind;
  }

  DictionaryException(Kind kind, String message, Throwable cause) {
    super(message, cause);
    this.kind = kind;
  }

  /** Returns what is wrong with the bytes. */
  public Kind kind() {
    return kind;
  }
}
