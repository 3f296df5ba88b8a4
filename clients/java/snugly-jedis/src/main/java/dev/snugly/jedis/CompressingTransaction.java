package dev.snugly.jedis;

import java.util.List;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Response;

/** A transaction whose values are compressed. They are restored by {@link #exec()}. */
final class CompressingTransaction extends AbstractTransaction {
  private final Commands commands;
  private final AbstractTransaction plain;

  CompressingTransaction(
      Commands commands, AbstractTransaction plain, CommandObjects commandObjects) {
    super(commandObjects);
    this.commands = commands;
    this.plain = plain;
  }

  @Override
  protected <T> Response<T> appendCommand(CommandObject<T> command) {
    return plain.executeCommand(commands.deferred(command));
  }

  @Override
  public void multi() {
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

  @Override
  public List<Object> exec() {
    return plain.exec();
  }

  @Override
  public String discard() {
    return plain.discard();
  }

  @Override
  public void close() {
    plain.close();
  }
}
