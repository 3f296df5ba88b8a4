package dev.snugly.jedis;

import dev.snugly.core.CommandRefusedException;
import java.util.List;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;

/**
 * A transaction whose values are compressed. They are restored by {@link #exec()}. One in which a
 * command was refused is discarded then, as a server does it: half of it must not run.
 */
final class CompressingTransaction extends AbstractTransaction {
  private final Commands commands;
  private final AbstractTransaction plain;

  private Batch batch;

  /** Refusal since MULTI, or null. */
  private CommandRefusedException refused;

  CompressingTransaction(
      Commands commands, AbstractTransaction plain, CommandObjects commandObjects) {
    super(commandObjects);
    this.commands = commands;
    this.plain = plain;
    batch = new Batch(commands);
  }

  @Override
  protected <T> Response<T> appendCommand(CommandObject<T> command) {
    try {
      return commands.append(command, batch, plain::executeCommand);
    } catch (CommandRefusedException error) {
      refused = error;
      throw error;
    }
  }

  @Override
  public void multi() {
    refused = null;
    batch = new Batch(commands);
    plain.multi();
  }

  @Override
  public String watch(String... keys) {
    return plain.watch(keys);
  }

  @Override
  public String watch(byte[]... keys) {
    return plain.watch(keys);
  }

  @Override
  public String unwatch() {
    return plain.unwatch();
  }

  /**
   * Runs the transaction.
   *
   * @return the results of its commands, or null if what was watched has changed
   * @throws JedisDataException {@code EXECABORT} if a command was refused: nothing has been run
   */
  @Override
  public List<Object> exec() {
    CommandRefusedException why = refused;
    if (why == null) {
      Batch done = batch;
      batch = new Batch(commands);
      if (plain.exec() == null) {
        return null;
      }
      done.gather();
      return done.results();
    }
    discard();
    throw new JedisDataException(
        "EXECABORT Transaction discarded because a command was refused: " + why.getMessage(), why);
  }

  @Override
  public String discard() {
    refused = null;
    batch = new Batch(commands);
    return plain.discard();
  }

  @Override
  public void close() {
    plain.close();
  }
}
