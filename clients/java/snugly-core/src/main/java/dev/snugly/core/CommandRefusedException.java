package dev.snugly.core;

/** A command that the server would run on compressed bytes. It has not been sent. */
public final class CommandRefusedException extends SnuglyException {
  private static final long serialVersionUID = 1L;

  private final String command;

  /**
   * @param message the text of the command table
   * @param command the command's name in capitals
   */
  public CommandRefusedException(String message, String command) {
    super(message);
    this.command = command;
  }

  /** Returns the command's name in capitals. */
  public String command() {
    return command;
  }
}
