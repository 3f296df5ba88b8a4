package snugly.clients;

import java.util.function.Function;

/**
 * A client library.
 *
 * @param announces what it sends as its name with CLIENT SETINFO
 */
record Library(String name, String announces, Function<Options, Client> open) {

  /**
   * What an application says of a connection; everything else is as the library has it.
   *
   * @param name the client's name, or null
   * @param password null for none
   */
  record Options(Address address, int protocol, String name, String password) {}
}
