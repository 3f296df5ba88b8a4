package dev.snugly.core.catalogue;

import dev.snugly.core.SnuglyException;

/** A document that is no catalogue, or one that cannot be used; the message says why. */
public final class CatalogueException extends SnuglyException {
  private static final long serialVersionUID = 1L;

  /** Reasons why it is refused. */
  public enum Kind {
    /** A newer client has written it. */
    VERSION,
    /** It is no JSON, or not of a catalogue's fields. */
    UNREADABLE,
    /** It is over one of the limits. */
    TOO_LARGE,
  }

  private final Kind kind;

  CatalogueException(Kind kind, String message) {
    super(message);
    this.kind = kind;
  }

  CatalogueException(Kind kind, String message, Throwable cause) {
    super(message, cause);
    this.kind = kind;
  }

  /** Returns why it is refused. */
  public Kind kind() {
    return kind;
  }
}
