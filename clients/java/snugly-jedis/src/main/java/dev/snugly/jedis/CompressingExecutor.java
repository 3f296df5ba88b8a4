package dev.snugly.jedis;

import redis.clients.jedis.CommandObject;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.util.IOUtils;

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
  public void close() {
    commands.close();
    IOUtils.closeQuietly(plain);
  }
}
