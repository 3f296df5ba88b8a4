package dev.snugly.core.catalogue;

import java.util.List;

/**
 * A connection to the server that a client's values come from: to the primaries, in a cluster. It
 * is used by one thread at a time.
 */
public interface DictionaryServer extends AutoCloseable {
  /**
   * Sends commands in one round trip, or in a few where their keys are on several nodes.
   *
   * @param commands one or more
   * @return as many outcomes, in their order, errors of the server among them. Commands that may
   *     not have reached it are an exception instead, which is that of the client library
   */
  List<DictionaryReply> send(List<DictionaryCommand> commands);

  /** Closes what this has opened. It may be used again, and opens that again then. */
  @Override
  void close();
}
