package dev.snugly.core.catalogue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.testing.Vectors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The transcripts of a client's dictionaries, which every language plays (manager.json). */
class TranscriptsTest implements Events.Listener {
  private static final TranscriptWords WORDS = new TranscriptWords();

  /** The monotonic clock when a transcript begins: it may begin anywhere. */
  private static final Duration BEGIN = Duration.ofSeconds(7);

  private final List<String> events = new ArrayList<>();
  private Duration passed = Duration.ZERO;
  private DictionaryManager manager;

  static Stream<Named<JsonObject>> transcripts() {
    List<JsonObject> all = Vectors.objects(Vectors.read("manager.json").get("transcripts"));
    assertFalse(all.isEmpty());
    return all.stream().map(each -> Named.of(each.get("name").getAsString(), each));
  }

  @ParameterizedTest
  @MethodSource("transcripts")
  void aManagerAsksAndDoesWhatATranscriptSays(JsonObject transcript) {
    JsonElement client = transcript.get("client");
    manager = manager(client == null ? new JsonObject() : client.getAsJsonObject());
    Step<?> step = null;
    for (JsonObject line : Vectors.objects(transcript.get("steps"))) {
      if (line.has("do")) {
        assertEquals(null, step, line::toString);
        step = begun(line);
      } else if (line.has("ask")) {
        step = answered(step, line);
      } else {
        checkEnd(step, line);
        step = null;
      }
      check(line);
    }
    assertEquals(null, step, "the last task has ended");
  }

  private DictionaryManager manager(JsonObject client) {
    JsonElement refresh = client.get("refresh");
    Duration every = refresh == null ? Duration.ofSeconds(60) : WORDS.seconds(refresh);
    JsonElement given = client.get("given");
    DictionaryCache cache =
        new DictionaryCache(
            given == null ? null : WORDS.dictionary(given),
            client.has("writes") && client.get("writes").getAsBoolean(),
            List.of(),
            every);
    ManagerSettings settings =
        new ManagerSettings(
            TranscriptWords.PREFIX,
            every,
            client.has("waits") && client.get("waits").getAsBoolean(),
            client.has("has_copies") && client.get("has_copies").getAsBoolean());
    return new DictionaryManager(settings, cache, new Events(this));
  }

  private Moment now() {
    return new Moment(BEGIN.plus(passed), TranscriptWords.BEGIN.plus(passed));
  }

  /** The first step of what a line begins, or null if it is no task. */
  private Step<?> begun(JsonObject line) {
    return switch (line.get("do").getAsString()) {
      case "fetch" -> manager.fetch(WORDS.ids(line.get("ids"))).start(now());
      case "refresh" -> manager.refresh().start(now());
      case "keep" -> manager.keep().start(now());
      default -> {
        perform(line);
        yield null;
      }
    };
  }

  private void perform(JsonObject line) {
    switch (line.get("do").getAsString()) {
      case "hurry" -> manager.hurry();
      case "hold" ->
          line.getAsJsonArray("ids")
              .forEach(name -> manager.cache().hold(WORDS.dictionary(name), now().wall()));
      case "read" ->
          manager.cache().read(WORDS.catalogue(line.getAsJsonObject("catalogue")), now().wall());
      case "pass" -> passed = passed.plus(WORDS.seconds(line.get("seconds")));
      case "look" -> {}
      default -> throw new AssertionError("nothing is known to be done for " + line);
    }
  }

  private Step<?> answered(Step<?> step, JsonObject line) {
    JsonObject expected = line.getAsJsonObject("ask");
    if (step instanceof Step.Pause<?> pause) {
      assertEquals(WORDS.seconds(expected.get("sleep")), pause.length(), line::toString);
      pass(line, pause.length());
      return pause.then().start(now());
    }
    if (step instanceof Step.Ask<?, ?> ask) {
      return answered(ask, expected, line);
    }
    throw new AssertionError(step + " asks nothing, but it should: " + line);
  }

  private <A> Step<?> answered(Step.Ask<A, ?> ask, JsonObject expected, JsonObject line) {
    pass(line, Duration.ZERO);
    JsonObject answer = line.has("answer") ? line.getAsJsonObject("answer") : new JsonObject();
    A outcome = ask.request().by(new TranscriptDriver(WORDS, expected, answer));
    return ask.then().resume(outcome, now());
  }

  private void pass(JsonObject line, Duration otherwise) {
    JsonElement after = line.get("after");
    passed = passed.plus(after == null ? otherwise : WORDS.seconds(after));
  }

  private void checkEnd(Step<?> step, JsonObject line) {
    Object outcome = assertInstanceOf(Step.Done.class, step, line::toString).outcome();
    JsonElement expected = line.get("done");
    if (expected.isJsonNull()) {
      assertEquals(null, outcome, line::toString);
    } else if (expected.isJsonArray()) {
      assertEquals(Set.copyOf(WORDS.ids(expected)), outcome, line::toString);
    } else {
      assertEquals(WORDS.seconds(expected), outcome, line::toString);
    }
    checkEvents(line);
  }

  private void checkEvents(JsonObject line) {
    List<JsonElement> expected = new ArrayList<>();
    if (line.has("events")) {
      line.getAsJsonArray("events").forEach(expected::add);
    }
    assertEquals(expected.size(), events.size(), () -> events + " at " + line);
    for (int index = 0; index < events.size(); index++) {
      JsonElement event = expected.get(index);
      String part =
          event.isJsonObject()
              ? event.getAsJsonObject().get("warning").getAsString()
              : event.getAsString();
      boolean isWarning = events.get(index).startsWith(WARNING);
      assertEquals(event.isJsonObject(), isWarning, events::toString);
      assertEquals(true, events.get(index).contains(part), () -> events + " at " + line);
    }
    events.clear();
  }

  /** Checks what is true after a line, as far as that says so. */
  private void check(JsonObject line) {
    Duration now = now().monotonic();
    if (line.has("missing")) {
      Set<Integer> missing = new TreeSet<>(WORDS.allIds());
      missing.removeIf(id -> !manager.isMissing(id, now));
      assertEquals(new TreeSet<>(WORDS.ids(line.get("missing"))), missing, line::toString);
    }
    if (line.has("off")) {
      assertEquals(line.get("off").getAsBoolean(), manager.isOff(now), line::toString);
    }
    if (line.has("holds")) {
      assertEquals(WORDS.ids(line.get("holds")), manager.cache().ids(), line::toString);
    }
    if (line.has("writes_with")) {
      checkWriting(line.getAsJsonObject("writes_with"));
    }
  }

  private void checkWriting(JsonObject keys) {
    for (String key : keys.keySet()) {
      JsonElement name = keys.get(key);
      assertEquals(
          name.isJsonNull() ? null : WORDS.dictionary(name),
          manager.cache().forKey(TranscriptWords.bytes(key)),
          key);
    }
  }

  private static final String WARNING = "warning: ";

  @Override
  public void warning(String message) {
    events.add(WARNING + message);
  }

  @Override
  public void fetched() {
    events.add("fetched");
  }

  @Override
  public void putBack() {
    events.add("put_back");
  }

  @Override
  public void mended() {
    events.add("mended");
  }

  @Override
  public void catalogueLost() {
    events.add("catalogue_lost");
  }
}
