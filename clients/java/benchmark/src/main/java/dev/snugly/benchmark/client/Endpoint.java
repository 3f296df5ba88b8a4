package dev.snugly.benchmark.client;

import java.nio.file.Path;
import java.time.Duration;

/**
 * Address of a server, and the way to connect.
 *
 * @param host of the server, or of one node of a cluster
 * @param port of it
 * @param tls whether to use TLS
 * @param tlsCa a PEM file with the certificates to trust; null for those that the machine trusts
 * @param cluster whether it is a cluster
 * @param tasks how many threads will ask at once
 */
public record Endpoint(String host, int port, boolean tls, Path tlsCa, boolean cluster, int tasks) {
  /** Longest wait for an answer: a link may be slow, and a thousand tasks share it. */
  static final Duration PATIENCE = Duration.ofMinutes(1);

  /** Returns the same server behind a relay on loopback. */
  public Endpoint behind(int relay) {
    return new Endpoint("127.0.0.1", relay, tls, tlsCa, cluster, tasks);
  }

  /** Returns the same server for another number of threads. */
  public Endpoint withTasks(int number) {
    return new Endpoint(host, port, tls, tlsCa, cluster, number);
  }
}
