package dev.snugly.testing;

import java.util.Map;
import org.opentest4j.TestAbortedException;

/** The programs that tests need, which environment variables name. */
public final class Needed {
  /** Set to anything, it has tests skipped whose programs are not named. */
  static final String SKIP = "SNUGLY_SKIP_TESTS";

  private Needed() {}

  /**
   * Returns a program, without which a test fails: nobody is to take a run without servers for one
   * that has tested something. With {@code SNUGLY_SKIP_TESTS} in the environment it is skipped.
   *
   * @param variable the environment variable that names it
   */
  public static String program(String variable) {
    return program(variable, System.getenv());
  }

  static String program(String variable, Map<String, String> environment) {
    String program = environment.get(variable);
    if (program != null) {
      return program;
    }
    if (environment.containsKey(SKIP)) {
      throw new TestAbortedException("skipped: " + variable + " is not set");
    }
    throw new IllegalStateException(
        variable + " is not set: make test-java sets it; to skip such tests set " + SKIP + "=1");
  }
}
