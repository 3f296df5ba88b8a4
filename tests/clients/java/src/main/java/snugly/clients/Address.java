package snugly.clients;

/** Where a server listens. */
record Address(String host, int port) {}
