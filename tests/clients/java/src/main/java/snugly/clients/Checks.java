package snugly.clients;

import com.google.gson.Gson;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What is checked, the same for every library. */
final class Checks {
  private static final String TEXT = "Zürich, 🦊";

  /** By name, in the order in which they run. */
  static final Map<String, Consumer<Run>> ALL = new LinkedHashMap<>();

  static {
    ALL.put("connect", Checks::connect);
    ALL.put("identity", Checks::identity);
    ALL.put("json", Checks::json);
    ALL.put("binary", Checks::binary);
    ALL.put("missing", Checks::missing);
    ALL.put("expiry", Checks::expiry);
    ALL.put("several", Checks::several);
    ALL.put("counter", Checks::counter);
    ALL.put("scan", Checks::scan);
    ALL.put("pipeline", Checks::pipeline);
    ALL.put("large-pipeline", Checks::largePipeline);
    ALL.put("delete", Checks::delete);
    ALL.put("errors", Checks::errors);
    ALL.put("concurrency", Checks::concurrency);
    ALL.put("transaction", Checks::transaction);
    ALL.put("script", Checks::script);
    ALL.put("watch", Checks::watch);
    ALL.put("password", Checks::password);
    ALL.put("quiet", Checks::quiet);
  }

  private Checks() {}

  private record User(int id, String name, List<String> tags) {}

  private static void connect(Run run) {
    Failure.unlessEqual(run.client().ping(), "PONG");
    run.client().flushAll();
  }

  private static void identity(Run run) {
    var fields =
        Arrays.stream(run.client().clientInfo().strip().split(" "))
            .map(field -> field.split("=", 2))
            .collect(Collectors.toMap(field -> field[0], field -> field[1]));
    Failure.unlessEqual(fields.get("name"), Run.CLIENT_NAME);
    Failure.unlessEqual(fields.get("resp"), String.valueOf(run.protocol()));
    Failure.unlessEqual(fields.get("lib-name"), run.library().announces());
  }

  private static void json(Run run) {
    var users =
        IntStream.range(0, 200)
            .mapToObj(id -> new User(id, TEXT + " " + id, List.of("cache", "compressed")))
            .toArray(User[]::new);
    run.client().set("json", new Gson().toJson(users));
    Failure.unlessEqual(new Gson().fromJson(run.client().get("json"), User[].class), users);
  }

  private static void binary(Run run) {
    var value = new byte[3 * 256];
    for (var index = 0; index < value.length; index++) {
      value[index] = (byte) index;
    }
    run.client().setBytes("binary", value);
    Failure.unlessEqual(run.client().getBytes("binary"), value);
    run.client().set("empty", "");
    Failure.unlessEqual(run.client().get("empty"), "");
  }

  private static void missing(Run run) {
    Failure.unlessEqual(run.client().get("missing"), null);
  }

  private static void expiry(Run run) {
    var client = run.client();
    client.set("expiring", "value", 100);
    Failure.unlessBetween(client.ttl("expiring"), 1, 100);
    Failure.unlessEqual(client.expire("expiring", 50), true);
    Failure.unlessBetween(client.ttl("expiring"), 1, 50);
    Failure.unlessEqual(client.persist("expiring"), true);
    Failure.unlessEqual(client.ttl("expiring"), -1L);
    Failure.unlessEqual(client.expire("missing", 50), false);
    Failure.unlessEqual(client.ttl("missing"), -2L);
  }

  private static void several(Run run) {
    run.client().mset(Map.of("one", "1", "two", TEXT));
    Failure.unlessEqual(run.client().mget("one", "missing", "two"), Arrays.asList("1", null, TEXT));
  }

  private static void counter(Run run) {
    Failure.unlessEqual(run.client().incrBy("counter", 1), 1L);
    Failure.unlessEqual(run.client().incrBy("counter", 41), 42L);
    Failure.unlessEqual(run.client().get("counter"), "42");
  }

  private static void scan(Run run) {
    var keys = numbered("scan", 500);
    run.client().mset(keys.stream().collect(Collectors.toMap(key -> key, key -> "value")));
    Failure.unlessEqual(new HashSet<>(run.client().scan("scan:*", 50)), new HashSet<>(keys));
  }

  private static void pipeline(Run run) {
    var keys = numbered("pipeline", 200);
    var value = "value ".repeat(100);
    var result = run.client().pipeline(keys, value);
    Failure.unlessEqual(result.read(), keys.stream().map(key -> value).toList());
    Failure.unlessSaid(result.refused(), "value is not an integer or out of range");
  }

  private static void largePipeline(Run run) {
    var keys = Collections.nCopies(200_000, "large-pipeline:" + "k".repeat(100));
    var value = "s".repeat(200);
    var result = run.client().pipeline(keys, value);
    Failure.unlessEqual(result.read(), Collections.nCopies(keys.size(), value));
    Failure.unlessSaid(result.refused(), "value is not an integer or out of range");
  }

  private static void delete(Run run) {
    run.client().mset(Map.of("one", "1", "two", "2"));
    Failure.unlessEqual(run.client().del("one", "two", "missing"), 2L);
    Failure.unlessEqual(run.client().get("one"), null);
  }

  private static void errors(Run run) {
    var client = run.client();
    client.set("text", "text");
    Failure.unlessSaid(
        Failure.of(() -> client.incrBy("text", 1)), "value is not an integer or out of range");
    Failure.unlessSaid(
        Failure.of(() -> client.command("NO-SUCH-COMMAND", "argument")),
        "unknown command 'NO-SUCH-COMMAND'");
    Failure.unlessEqual(client.get("text"), "text");
  }

  private static void concurrency(Run run) {
    var keys = numbered("many", 50);
    Set<String> complaints =
        keys.parallelStream()
            .map(
                key ->
                    Failure.of(
                        () -> {
                          run.client().set(key, key);
                          Failure.unlessEqual(run.client().get(key), key);
                        }))
            .collect(Collectors.toSet());
    Failure.unlessEqual(complaints, Set.of(""));
  }

  private static void transaction(Run run) {
    Failure.unlessEqual(run.client().transaction("transaction", 41), List.of("OK", 42L, "42"));
  }

  private static void script(Run run) {
    run.client().set("lock", "mine");
    Failure.unlessEqual(run.client().deleteIfEqual("lock", "another's"), 0L);
    Failure.unlessEqual(run.client().deleteIfEqual("lock", "mine"), 1L);
    Failure.unlessEqual(run.client().get("lock"), null);
  }

  private static void watch(Run run) {
    var client = run.client();
    Runnable meddle = () -> client.set("watched", "somebody else");
    Failure.unlessEqual(client.watch("watched", "not to be", meddle), false);
    Failure.unlessEqual(client.get("watched"), "somebody else");
    Failure.unlessEqual(client.watch("watched", "mine", () -> {}), true);
    Failure.unlessEqual(client.get("watched"), "mine");
  }

  private static void password(Run run) {
    Failure.unlessEqual(knock(run, "secret"), "");
    Failure.unlessSaid(knock(run, "wrong"), "WRONGPASS");
    Failure.unlessSaid(knock(run, null), "NOAUTH");
  }

  private static void quiet(Run run) {
    Failure.unlessEqual(run.complaints().take(), List.of());
  }

  /** What goes wrong with PING under this password. */
  private static String knock(Run run, String password) {
    return Failure.of(
        () -> {
          try (var client = run.knock(password)) {
            Failure.unlessEqual(client.ping(), "PONG");
          }
        });
  }

  private static List<String> numbered(String prefix, int count) {
    return IntStream.range(0, count).mapToObj(number -> prefix + ":" + number).toList();
  }
}
