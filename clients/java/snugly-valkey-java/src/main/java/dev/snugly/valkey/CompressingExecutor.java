package dev.snugly.valkey;

import io.valkey.CommandObject;
import io.valkey.executors.CommandExecutor;
import io.valkey.util.IOUtils;

/** Executes commands with their values compressed, by another executor. */
final class CompressingExecutor implements CommandExecutor {
  private final Commands commands;
  private final CommandExecutor plain;

  CompressingExecutor(Commands commands, CommandExecutor plain) {
    this.commands = commands;
    this.plain = plain;
  }

  @Override
  public <T> T executeCommand(CommandObject<T> command) {
    return commands.execute(command, plain);
  }

  @Override
  public <T> T broadcastCommand(CommandObject<T> command) {
    return plain.broadcastCommand(command);
  }

  @Override
  public void close() {
    commands.close();
    IOUtils.closeQuietly(plain);
  }
}
