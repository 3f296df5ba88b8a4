package snugly.clients;

/** One library in one protocol against the servers. */
final class Run implements AutoCloseable {
  static final String CLIENT_NAME = "java-tester";

  private final Library library;
  private final int protocol;
  private final Address open;
  private final Address locked;
  private final Complaints complaints;
  private Client client;

  Run(Library library, int protocol, Address open, Address locked, Complaints complaints) {
    this.library = library;
    this.protocol = protocol;
    this.open = open;
    this.locked = locked;
    this.complaints = complaints;
  }

  Library library() {
    return library;
  }

  int protocol() {
    return protocol;
  }

  Complaints complaints() {
    return complaints;
  }

  /** The connection of this run, opened when it is first needed. */
  Client client() {
    if (client == null) {
      client = library.open().apply(new Library.Options(open, protocol, CLIENT_NAME, null));
    }
    return client;
  }

  /** A connection to the server that wants a password. */
  Client knock(String password) {
    return library.open().apply(new Library.Options(locked, protocol, null, password));
  }

  @Override
  public void close() {
    if (client != null) {
      client.close();
    }
  }
}
