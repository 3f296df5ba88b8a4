package dev.snugly.core;

/**
 * The workspaces of the process: a fixed number, for any number of threads.
 *
 * <p>They are not kept by thread, since a million virtual threads would have one each. A thread
 * tries the one that its number points to, of as many as processors need, and then the next ones:
 * so threads that are few find their own again, and the others are for when threads lose their
 * processor while they hold one. Who finds all of them in use gets one that is thrown away, which
 * takes as long as compressing tens of short values.
 */
final class Workspaces {
  /**
   * Number that threads begin with: a power of two, so that processors never wait for each other.
   */
  private static final int HOMES =
      Integer.highestOneBit(2 * Math.max(Runtime.getRuntime().availableProcessors(), 2));

  /** Number of them. */
  static final int COUNT = 4 * HOMES;

  private static final Workspace[] ALL = new Workspace[COUNT];

  static {
    for (int index = 0; index < COUNT; index++) {
      ALL[index] = new Workspace(index);
    }
  }

  private Workspaces() {}

  /** Gives the caller a workspace of its own, to be {@link Workspace#release() released} soon. */
  @SuppressWarnings("deprecation") // threadId() came with Java 19
  static Workspace acquire() {
    int home = (int) Thread.currentThread().getId() & (HOMES - 1);
    for (int offset = 0; offset < COUNT; offset++) {
      Workspace workspace = ALL[(home + offset) % COUNT];
      if (workspace.tryAcquire()) {
        return workspace;
      }
    }
    return new Workspace(COUNT);
  }
}
