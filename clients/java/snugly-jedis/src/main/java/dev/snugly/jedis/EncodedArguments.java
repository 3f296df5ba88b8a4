package dev.snugly.jedis;

import java.util.List;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.args.Rawable;

/**
 * The arguments of a command as they are sent, with everything else that the library knows of it.
 */
final class EncodedArguments extends CommandArguments {
  EncodedArguments(CommandArguments given, List<Rawable> sent) {
    super(given.getCommand());
    sent.subList(1, sent.size()).forEach(this::add);
    for (Object key : given.getKeys()) {
      if (key instanceof byte[] bytes) {
        addHashSlotKeys(bytes);
      } else {
        addHashSlotKeys(key.toString());
      }
    }
    if (given.isBlocking()) {
      blocking();
    }
  }

  /** A command with one key. */
  static CommandArguments of(Protocol.Command command, byte[] key) {
    return new CommandArguments(command).key(key);
  }
}
