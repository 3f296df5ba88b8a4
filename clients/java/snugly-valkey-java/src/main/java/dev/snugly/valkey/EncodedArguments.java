package dev.snugly.valkey;

import io.valkey.ClusterCommandArguments;
import io.valkey.CommandArguments;
import io.valkey.Protocol;
import io.valkey.args.Rawable;
import java.util.List;

/**
 * The arguments of a command as they are sent, with everything else that the library knows of it.
 */
final class EncodedArguments extends ClusterCommandArguments {
  private final CommandArguments given;

  EncodedArguments(CommandArguments given, List<Rawable> sent) {
    super(given.getCommand());
    this.given = given;
    sent.subList(1, sent.size()).forEach(this::add);
    if (given.isBlocking()) {
      blocking();
    }
  }

  /** A command with one key. */
  static CommandArguments of(Protocol.Command command, byte[] key) {
    return new ClusterCommandArguments(command).key(key);
  }

  @Override
  public int getCommandHashSlot() {
    return given instanceof ClusterCommandArguments cluster ? cluster.getCommandHashSlot() : -1;
  }
}
