package dev.snugly.jedis;

import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;

/** A pipeline whose values are compressed. They are restored when their responses are asked for. */
public final class CompressingPipeline extends AbstractPipeline {
  private final Commands commands;
  private final AbstractPipeline plain;
  private final List<Response<?>> responses = new ArrayList<>();

  CompressingPipeline(Commands commands, AbstractPipeline plain, CommandObjects commandObjects) {
    super(commandObjects);
    this.commands = commands;
    this.plain = plain;
  }

  @Override
  protected <T> Response<T> appendCommand(CommandObject<T> command) {
    Response<T> response = plain.executeCommand(commands.deferred(command));
    responses.add(response);
    return response;
  }

  @Override
  public void sync() {
    plain.sync();
    responses.clear();
  }

  /**
   * Synchronizes the pipeline.
   *
   * @return the results of all commands since the last time, each an error if that is what it is
   */
  public List<Object> syncAndReturnAll() {
    plain.sync();
    List<Object> results = new ArrayList<>(responses.size());
    for (Response<?> response : responses) {
      try {
        results.add(response.get());
      } catch (JedisDataException error) {
        results.add(error);
      }
    }
    responses.clear();
    return results;
  }

  @Override
  public void close() {
    plain.close();
  }
}
