package dev.snugly.benchmark.measure;

/** A client has returned something else than what it had written. */
public final class WrongValueException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  WrongValueException(String key, String wanted, String found) {
    super("%s has %s, and not %s".formatted(key, describe(found), describe(wanted)));
  }

  private static String describe(String value) {
    return value == null ? "no value" : "a value of %d characters".formatted(value.length());
  }
}
