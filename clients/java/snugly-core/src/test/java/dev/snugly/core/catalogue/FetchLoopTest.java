package dev.snugly.core.catalogue;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Dictionary;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Look-ups of several readers, with a server that is a map. */
class FetchLoopTest implements Events.Listener {
  private static final Dictionary FIRST = other(1);
  private static final Dictionary SECOND = other(2);

  /** A time between two rounds that no test lives to see the end of. */
  private static final Duration REFRESH = Duration.ofHours(24);

  private final Map<String, byte[]> stored = new ConcurrentHashMap<>();

  /** The numbers of commands that came together. */
  private final List<Integer> batches = new CopyOnWriteArrayList<>();

  private final AtomicInteger opened = new AtomicInteger();
  private final AtomicInteger losses = new AtomicInteger();
  private final AtomicInteger fetched = new AtomicInteger();
  private final List<Throwable> unexpected = Collections.synchronizedList(new ArrayList<>());
  private final DictionaryManager manager =
      new DictionaryManager(
          new ManagerSettings("{snugly}", REFRESH, false, false),
          new DictionaryCache(null, false, List.of(), REFRESH),
          new Events(this));
  private final FetchLoop loop = loop(() -> new TaskDriver(new Stored(), null));

  private FetchLoop loop(Supplier<TaskDriver> drivers) {
    return new FetchLoop(manager, drivers, unexpected::add);
  }

  /** A server that is lost as often as a test says. */
  private final class Stored implements DictionaryServer {
    Stored() {
      opened.incrementAndGet();
    }

    @Override
    public List<DictionaryReply> send(List<DictionaryCommand> commands) {
      batches.add(commands.size());
      if (losses.getAndUpdate(left -> Math.max(left - 1, 0)) > 0) {
        throw new IllegalStateException("the connection is lost");
      }
      return commands.stream()
          .map(each -> DictionaryReply.of(stored.get(new String(each.key(), UTF_8))))
          .toList();
    }

    @Override
    public void close() {}
  }

  @AfterEach
  void close() {
    loop.close();
    assertEquals(List.of(), unexpected);
  }

  private static Dictionary other(int number) {
    return Dictionary.of(Vectors.otherDictionary(number));
  }

  private void put(Dictionary dictionary) {
    stored.put("{snugly}:dict:" + dictionary.id(), dictionary.bytes());
  }

  private void list(Dictionary... dictionaries) {
    manager.cache().read(catalogue(dictionaries), TaskDriver.now().wall());
  }

  private static byte[] catalogue(Dictionary... dictionaries) {
    List<String> rows = new ArrayList<>();
    for (Dictionary each : dictionaries) {
      rows.add("{\"pattern\": \"*\", \"id\": %d}".formatted(each.id()));
    }
    return ("{\"version\": 1, \"dictionaries\": " + rows + "}").getBytes(UTF_8);
  }

  private static void await(CompletableFuture<Void> end) throws Exception {
    assertNull(end.get(1, TimeUnit.MINUTES));
  }

  @Test
  void allThatAReplyNeedsIsFetchedInOneRoundTripOverOneConnection() throws Exception {
    Dictionary[] all = new Dictionary[20];
    Arrays.setAll(all, FetchLoopTest::other);
    List<Integer> ids = Arrays.stream(all).map(Dictionary::id).toList();
    Arrays.stream(all).forEach(this::put);
    await(loop.look(ids));
    assertEquals(List.of(all.length + 1), batches, "they and the catalogue");
    assertEquals(1, opened.get());
    assertTrue(manager.cache().ids().containsAll(ids));
  }

  @Test
  void allWhoWaitShareOneLookUpAndGetWhatIsFoundAtOnce() throws Exception {
    list(FIRST, SECOND);
    CompletableFuture<Void> both = loop.look(List.of(FIRST.id(), SECOND.id()));
    CompletableFuture<Void> first = loop.look(List.of(FIRST.id()));
    put(FIRST);
    await(first);
    assertFalse(both.isDone());
    put(SECOND);
    await(both);
    assertEquals(2, fetched.get());
  }

  @Test
  void aServerThatIsLostIsAskedAgain() throws Exception {
    list(FIRST);
    put(FIRST);
    losses.set(2);
    await(loop.look(List.of(FIRST.id())));
    assertEquals(List.of(1, 1, 1), batches);
    assertEquals(1, fetched.get());
  }

  @Test
  void aServerThatIsLostHasNotSaidThatAnUnknownOneIsNotThere() throws Exception {
    put(FIRST);
    losses.set(2);
    await(loop.look(List.of(FIRST.id())));
    assertEquals(List.of(2, 2, 2), batches, "it and the catalogue");
    assertEquals(1, fetched.get());
  }

  @Test
  void whatTurnsOutToBeListedKeepsNobodyFromLookingForOthers() throws Exception {
    stored.put("{snugly}:dicts", catalogue(FIRST));
    put(SECOND);
    CompletableFuture<Void> listed = loop.look(List.of(FIRST.id()));
    await(loop.look(List.of(SECOND.id())));
    assertEquals(SECOND, manager.cache().find(SECOND.id()));
    assertFalse(listed.isDone());
  }

  @Test
  void whatWasLookedForInVainCostsNoOtherLookUp() throws Exception {
    await(loop.look(List.of(FIRST.id())));
    await(loop.look(List.of(FIRST.id())));
    assertEquals(List.of(2), batches, "it and the catalogue");
  }

  @Test
  void whoIsWaitedForIsToldOfTheEnd() throws Exception {
    list(FIRST);
    CompletableFuture<Void> end = loop.look(List.of(FIRST.id()));
    Waiting.until("it was looked for", () -> !batches.isEmpty());
    loop.close();
    await(end);
    await(loop.look(List.of(SECOND.id())));
    assertEquals(1, opened.get(), "who is closed asks nobody");
  }

  @Test
  void whoeverWaitsIsToldThatThereIsNoConnection() throws Exception {
    FetchLoop broken =
        loop(
            () -> {
              throw new IllegalStateException("there is no connection to be had");
            });
    await(broken.look(List.of(FIRST.id())));
    assertEquals(1, unexpected.size());
    unexpected.clear();
    put(FIRST);
    await(loop.look(List.of(FIRST.id())));
    assertEquals(1, fetched.get(), "others are not held up");
  }

  @Override
  public void warning(String message) {
    throw new AssertionError(message);
  }

  @Override
  public void fetched() {
    fetched.incrementAndGet();
  }

  @Override
  public void putBack() {}

  @Override
  public void mended() {}

  @Override
  public void catalogueLost() {}
}
