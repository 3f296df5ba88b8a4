package snugly.clients;

import com.google.gson.Gson;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import net.spy.memcached.CASResponse;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.FailureMode;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;

/**
 * Connects to a server with spymemcached as it comes, and prints one line of JSON for each check.
 *
 * <pre>java -cp ... snugly.clients.Memcached HOST PORT PORT-WITH-PASSWORD</pre>
 */
public final class Memcached {
  private static final int WRONG_USAGE = 2;
  private static final long PATIENCE_SECONDS = 60;
  private static final Map<String, Consumer<MemcachedClient>> CHECKS = new LinkedHashMap<>();

  static {
    CHECKS.put("connect", Memcached::connect);
    CHECKS.put("binary", Memcached::binary);
    CHECKS.put("missing", Memcached::missing);
    CHECKS.put("objects", Memcached::objects);
    CHECKS.put("modes", Memcached::modes);
    CHECKS.put("expiry", Memcached::expiry);
    CHECKS.put("several", Memcached::several);
    CHECKS.put("counter", Memcached::counter);
    CHECKS.put("cas", Memcached::cas);
    CHECKS.put("concurrency", Memcached::concurrency);
    CHECKS.put("errors", Memcached::errors);
  }

  private Memcached() {}

  private record Line(String client, String protocol, String check, boolean ok, String detail) {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length != 3) {
      System.err.println("usage: Memcached HOST PORT PORT-WITH-PASSWORD");
      System.exit(WRONG_USAGE);
    }
    System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
    Complaints.collect();
    var open = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
    var locked = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[2]));

    var allOk = true;
    for (var protocol : List.of(Protocol.TEXT, Protocol.BINARY)) {
      var client = new MemcachedClient(factory(protocol).build(), List.of(open));
      for (var check : CHECKS.entrySet()) {
        var detail = Failure.of(() -> check.getValue().accept(client));
        allOk &= report(protocol, check.getKey(), detail);
      }
      client.shutdown();
    }
    allOk &= report(Protocol.BINARY, "password", Failure.of(() -> password(locked)));
    System.exit(allOk ? 0 : 1);
  }

  private static boolean report(Protocol protocol, String check, String detail) {
    var name = protocol.name().toLowerCase(Locale.ROOT);
    var line = new Line("spymemcached", name, check, detail.isEmpty(), detail);
    System.out.println(new Gson().toJson(line));
    return line.ok();
  }

  private static ConnectionFactoryBuilder factory(Protocol protocol) {
    return new ConnectionFactoryBuilder()
        .setProtocol(protocol)
        .setFailureMode(FailureMode.Retry)
        .setOpTimeout(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
  }

  /** The result of an operation, for which a busy machine may need long. */
  private static <T> T of(Future<T> future) {
    try {
      return future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException | ExecutionException | TimeoutException error) {
      throw new IllegalStateException(error);
    }
  }

  private static void connect(MemcachedClient client) {
    Failure.unlessEqual(of(client.flush()), true);
    Failure.unlessEqual(client.getVersions().size(), 1);
  }

  private static void binary(MemcachedClient client) {
    var value = new byte[3 * 256];
    for (var index = 0; index < value.length; index++) {
      value[index] = (byte) index;
    }
    Failure.unlessEqual(of(client.set("binary", 0, value)), true);
    Failure.unlessEqual(client.get("binary"), value);
    of(client.set("empty", 0, ""));
    Failure.unlessEqual(client.get("empty"), "");
  }

  private static void missing(MemcachedClient client) {
    Failure.unlessEqual(client.get("missing"), null);
    Failure.unlessEqual(of(client.delete("missing")), false);
  }

  /** What the flags tell: the type, and whether the client has compressed it. */
  private static void objects(MemcachedClient client) {
    for (var value :
        List.<Object>of(
            42, 1L << 40, true, 1.5, "Zürich, 🦊", "again ".repeat(10_000), List.of("a", "b"))) {
      of(client.set("object", 0, value));
      Failure.unlessEqual(client.get("object"), value);
    }
  }

  private static void modes(MemcachedClient client) {
    Failure.unlessEqual(of(client.replace("modes", 0, "b")), false);
    Failure.unlessEqual(of(client.append("modes", "b")), false);
    Failure.unlessEqual(of(client.add("modes", 0, "b")), true);
    Failure.unlessEqual(of(client.add("modes", 0, "x")), false);
    Failure.unlessEqual(of(client.append("modes", "c")), true);
    Failure.unlessEqual(of(client.prepend("modes", "a")), true);
    Failure.unlessEqual(client.get("modes"), "abc");
    Failure.unlessEqual(of(client.delete("modes")), true);
  }

  private static void expiry(MemcachedClient client) {
    of(client.set("expiring", 100, "value"));
    Failure.unlessEqual(of(client.touch("expiring", 200)), true);
    Failure.unlessEqual(client.get("expiring"), "value");
    // A date that has passed.
    of(client.set("expiring", 1_000_000_000, "value"));
    Failure.unlessEqual(client.get("expiring"), null);
    Failure.unlessEqual(of(client.touch("expiring", 200)), false);
  }

  private static void several(MemcachedClient client) {
    var values = new HashMap<String, Object>();
    for (var number = 0; number < 500; number++) {
      values.put("several:" + number, "value ".repeat(number));
    }
    var stored = values.entrySet().stream().map(e -> client.set(e.getKey(), 0, e.getValue()));
    stored.toList().forEach(Memcached::of);
    var keys = new ArrayList<>(values.keySet());
    keys.add("missing");
    Failure.unlessEqual(client.getBulk(keys), values);
  }

  private static void counter(MemcachedClient client) {
    Failure.unlessEqual(client.incr("counter", 1), -1L);
    Failure.unlessEqual(client.incr("counter", 1, 10), 10L);
    Failure.unlessEqual(client.incr("counter", 32), 42L);
    Failure.unlessEqual(client.decr("counter", 100), 0L);
  }

  private static void cas(MemcachedClient client) {
    of(client.set("cas", 0, "first"));
    var number = client.gets("cas").getCas();
    Failure.unlessEqual(client.cas("cas", number, "others"), CASResponse.OK);
    Failure.unlessEqual(client.cas("cas", number, "mine"), CASResponse.EXISTS);
    Failure.unlessEqual(client.get("cas"), "others");
    of(client.delete("cas"));
    Failure.unlessEqual(client.cas("cas", number, "mine"), CASResponse.NOT_FOUND);
  }

  private static void concurrency(MemcachedClient client) {
    var complaints =
        IntStream.range(0, 50)
            .parallel()
            .mapToObj(
                number ->
                    Failure.of(
                        () -> {
                          of(client.set("many:" + number, 0, number));
                          Failure.unlessEqual(client.get("many:" + number), number);
                        }))
            .collect(Collectors.toSet());
    Failure.unlessEqual(complaints, Set.of(""));
  }

  private static void errors(MemcachedClient client) {
    of(client.set("text", 0, "text"));
    Failure.unlessEqual(client.incr("text", 1), -1L);
    Failure.unlessEqual(client.get("text"), "text");
  }

  private static void password(InetSocketAddress address) {
    try {
      var user = new PlainCallbackHandler("default", "secret");
      var login = new AuthDescriptor(new String[] {"PLAIN"}, user);
      var factory = factory(Protocol.BINARY).setAuthDescriptor(login).build();
      var client = new MemcachedClient(factory, List.of(address));
      of(client.set("key", 0, "value"));
      Failure.unlessEqual(client.get("key"), "value");
      client.shutdown();
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }
}
