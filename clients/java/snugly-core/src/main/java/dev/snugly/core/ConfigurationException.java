package dev.snugly.core;

/** A setting, or a client that cannot be compressed; the message says what is allowed. */
public class ConfigurationException extends SnuglyException {
  private static final long serialVersionUID = 1L;

  /**
   * @param message which setting, its value, and what it may be
   */
  public ConfigurationException(String message) {
    super(message);
  }

  /**
   * @param message which setting, its value, and what it may be
   * @param cause what was behind it
   */
  public ConfigurationException(String message, Throwable cause) {
    super(message, cause);
  }
}
