package dev.snugly.core;

import dev.snugly.core.UndecodableException.Kind;

/** Defect of an envelope or a GZIP file, before anybody has said where it was. */
final class Fault extends Exception {
  private static final long serialVersionUID = 1L;

  final Kind kind;

  /** The ID of the dictionary that is missing, or 0. */
  final int dictionary;

  private Fault(Kind kind, String why, int dictionary, Throwable cause) {
    // Nobody sees this one's own stack.
    super(why, cause, false, false);
    this.kind = kind;
    this.dictionary = dictionary;
  }

  static Fault corrupt(String why) {
    return new Fault(Kind.CORRUPT, why, 0, null);
  }

  static Fault corrupt(String why, Throwable cause) {
    return new Fault(Kind.CORRUPT, why, 0, cause);
  }

  static Fault unknownBackend() {
    return new Fault(
        Kind.UNKNOWN_BACKEND,
        "its backend is unknown: a newer client may have written it",
        0,
        null);
  }

  static Fault tooLarge(String what, Limit limit) {
    return new Fault(
        Kind.TOO_LARGE,
        what + ", and at most " + limit.bytes() + " are accepted: see " + limit.option(),
        0,
        null);
  }

  static Fault dictionaryMissing(int id) {
    return new Fault(
        Kind.DICTIONARY_MISSING,
        "it needs the dictionary " + Integer.toUnsignedString(id) + ", which is not at hand",
        id,
        null);
  }

  /** The same where its key may not be read, as no key that begins with the prefix. */
  static Fault dictionaryDenied(int id, String prefix) {
    return new Fault(
        Kind.DICTIONARY_MISSING,
        "it needs the dictionary "
            + Integer.toUnsignedString(id)
            + ", and the keys "
            + prefix
            + ":* may not be read: allow GET for them",
        id,
        null);
  }

  static Fault outOfMemory(String what, Throwable cause) {
    return new Fault(Kind.OUT_OF_MEMORY, "there is no memory for " + what, 0, cause);
  }
}
