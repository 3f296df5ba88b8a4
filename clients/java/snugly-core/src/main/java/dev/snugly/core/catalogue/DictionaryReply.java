package dev.snugly.core.catalogue;

/** The outcome of a {@link DictionaryCommand}. */
public final class DictionaryReply {
  private final Kind kind;
  private final byte[] bytes;
  private final String reason;

  /** Kinds of outcomes. */
  enum Kind {
    /** The command found or did something. */
    SOMETHING,
    /** The command found or did nothing: the reply is null or 0. */
    NOTHING,
    /** The user may not do it (NOPERM). */
    DENIED,
    /** The server has answered with any other error. */
    REFUSED,
    /** There is no connection, or it was lost. */
    LOST,
  }

  private DictionaryReply(Kind kind, byte[] bytes, String reason) {
    this.kind = kind;
    this.bytes = bytes;
    this.reason = reason;
  }

  /**
   * Takes a reply that is no error.
   *
   * @param reply null, a {@code byte[]}, a number, or anything else
   * @return the outcome
   */
  public static DictionaryReply of(Object reply) {
    boolean isNothing =
        reply == null || (reply instanceof Number number && number.longValue() == 0);
    byte[] bytes = reply instanceof byte[] string ? string : null;
    return new DictionaryReply(isNothing ? Kind.NOTHING : Kind.SOMETHING, bytes, null);
  }

  /**
   * Takes an error that the server has answered.
   *
   * @param message the error, which begins with its code
   * @return the outcome
   */
  public static DictionaryReply error(String message) {
    boolean isDenied = message != null && message.startsWith("NOPERM");
    return new DictionaryReply(
        isDenied ? Kind.DENIED : Kind.REFUSED, null, String.valueOf(message));
  }

  static DictionaryReply lost(String reason) {
    return new DictionaryReply(Kind.LOST, null, reason);
  }

  Kind kind() {
    return kind;
  }

  /** The string that was replied, or null for anything else. */
  byte[] bytes() {
    return bytes;
  }

  /** The message of an error, or null if it is none. */
  String reason() {
    return reason;
  }

  /** Whether the command found or did something. */
  boolean isSomething() {
    return kind == Kind.SOMETHING;
  }

  /** Whether the command has a reply, and that is no error. */
  boolean isAnswered() {
    return kind == Kind.SOMETHING || kind == Kind.NOTHING;
  }
}
