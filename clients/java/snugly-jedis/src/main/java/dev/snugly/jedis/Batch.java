package dev.snugly.jedis;

import dev.snugly.core.client.Reply;
import dev.snugly.core.commands.Request;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.Builder;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;

/** Commands of one pipeline or transaction, and the responses to them. */
final class Batch {
  private final Commands commands;
  private final Reply reply;
  private final List<Response<?>> responses = new ArrayList<>();

  /** As they come, of those whose values are restored. */
  private final List<Response<Object>> raws = new ArrayList<>();

  Batch(Commands commands) {
    this.commands = commands;
    reply = commands.reply();
  }

  /** A response that passes as it is. */
  <T> Response<T> plain(Response<T> response) {
    responses.add(response);
    return response;
  }

  /** A response whose values are restored when it is asked for. */
  <T> Response<T> restored(Request request, Response<Object> raw, Builder<T> builder) {
    Response<T> response = new Restored<>(commands, reply, request, raw, builder);
    raws.add(raw);
    responses.add(response);
    return response;
  }

  /** Gets the dictionaries that the responses need, all at once, when these have come. */
  void gather() {
    List<Object> replies = new ArrayList<>(raws.size());
    for (Response<Object> raw : raws) {
      try {
        replies.add(raw.get());
      } catch (JedisDataException error) {
        // It has no values.
      }
    }
    reply.gather(replies);
  }

  /** All results, each an error if that is what it is. */
  List<Object> results() {
    List<Object> results = new ArrayList<>(responses.size());
    for (Response<?> response : responses) {
      try {
        results.add(response.get());
      } catch (JedisDataException error) {
        results.add(error);
      }
    }
    return results;
  }

  private static final class Restored<T> extends Response<T> {
    private final Commands commands;
    private final Reply reply;
    private final Request request;
    private final Builder<T> builder;

    /** Null when the value was restored, or an error. */
    private Response<Object> raw;

    private T value;
    private JedisDataException error;

    Restored(
        Commands commands, Reply reply, Request request, Response<Object> raw, Builder<T> builder) {
      super(builder);
      this.commands = commands;
      this.reply = reply;
      this.request = request;
      this.raw = raw;
      this.builder = builder;
    }

    @Override
    public T get() {
      if (raw != null) {
        restore(raw.get());
        raw = null;
      }
      if (error != null) {
        throw error;
      }
      return value;
    }

    private void restore(Object stored) {
      if (stored == null) {
        return;
      }
      try {
        value = builder.build(commands.restored(request, stored, reply));
      } catch (JedisDataException undecodable) {
        error = undecodable;
      }
    }

    @Override
    public String toString() {
      return "Response " + builder;
    }
  }
}
