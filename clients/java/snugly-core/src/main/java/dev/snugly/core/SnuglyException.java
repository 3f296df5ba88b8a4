package dev.snugly.core;

/** The base of all errors of this library. */
public class SnuglyException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * @param message what happened, to what, and what to do
   */
  public SnuglyException(String message) {
    super(message);
  }

  /**
   * @param message what happened, to what, and what to do
   * @param cause what was behind it
   */
  public SnuglyException(String message, Throwable cause) {
    super(message, cause);
  }
}
