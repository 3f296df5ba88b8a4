package dev.snugly.jedis;

import java.util.List;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Response;

/** A pipeline whose values are compressed. They are restored when their responses are asked for. */
public final class CompressingPipeline extends AbstractPipeline {
  private final Commands commands;
  private final AbstractPipeline plain;
  private Batch batch;

  CompressingPipeline(Commands commands, AbstractPipeline plain, CommandObjects commandObjects) {
    super(commandObjects);
    this.commands = commands;
    this.plain = plain;
    batch = new Batch(commands);
  }

  @Override
  protected <T> Response<T> appendCommand(CommandObject<T> command) {
    return commands.append(command, batch, plain::executeCommand);
  }

  /** Sends what was given, and gets the dictionaries that the replies need, all at once. */
  @Override
  public void sync() {
    synced();
  }

  private Batch synced() {
    Batch done = batch;
    batch = new Batch(commands);
    commands.watched(
        () -> {
          plain.sync();
          return null;
        });
    done.gather();
    return done;
  }

  /**
   * Synchronizes the pipeline.
   *
   * @return the results of all commands since the last time, each an error if that is what it is
   */
  public List<Object> syncAndReturnAll() {
    return synced().results();
  }

  @Override
  public void close() {
    try {
      sync();
    } finally {
      plain.close();
    }
  }
}
