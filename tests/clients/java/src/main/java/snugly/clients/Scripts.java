package snugly.clients;

/** Scripts of applications, as locks have them. */
final class Scripts {
  static final String DELETE_IF_EQUAL =
      """
      if redis.call("GET", KEYS[1]) == ARGV[1] then
        return redis.call("DEL", KEYS[1])
      end
      return 0""";

  private Scripts() {}
}
