package snugly.clients;

import java.util.Objects;

/** That something is not as it should be, and the words with which checks say so. */
final class Failure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private Failure(String message) {
    super(message);
  }

  /** What goes wrong in this action; empty if nothing does. */
  static String of(Runnable action) {
    try {
      action.run();
      return "";
    } catch (Failure failure) {
      return failure.getMessage();
    } catch (RuntimeException failure) {
      return messages(failure);
    }
  }

  static void unlessEqual(Object got, Object expected) {
    if (!Objects.deepEquals(got, expected)) {
      throw new Failure("got %.200s, expected %.200s".formatted(got, expected));
    }
  }

  static void unlessBetween(long got, long least, long most) {
    if (got < least || got > most) {
      throw new Failure("got %d, expected %d to %d".formatted(got, least, most));
    }
  }

  static void unlessSaid(String message, String words) {
    if (!message.contains(words)) {
      throw new Failure("the error is \"%s\", and should say \"%s\"".formatted(message, words));
    }
  }

  /** The messages of an exception and its causes, for libraries wrap what the server said. */
  private static String messages(Throwable failure) {
    var message = failure.toString();
    return failure.getCause() == null
        ? message
        : message + ", caused by " + messages(failure.getCause());
  }
}
