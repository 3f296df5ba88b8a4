package dev.snugly.spring;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Encoding;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.GzipFile;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.cache.autoconfigure.RedisCacheManagerBuilderCustomizer;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.cache.RedisCacheManager.RedisCacheManagerBuilder;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.serializer.RedisSerializationContext.SerializationPair;
import org.springframework.data.redis.serializer.RedisSerializer;

/** Applications of Spring Boot with a real server. */
class AutoConfigurationTest {
  private static final String PAGE = "<p>a page of some length</p>".repeat(40);
  private static final String USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"status\": \"status-3\"}";

  /** A text that would be read as another one. */
  private static final String ENVELOPE =
      new String(new byte[] {0, 1, 2, 0, 2, 1, 0, 0, 0, 16, 'a'}, UTF_8);

  private static Server server;

  private final List<ConfigurableApplicationContext> applications = new ArrayList<>();
  private Connection plain;

  /** A service that caches its results. */
  static class Pages {
    private final AtomicInteger made = new AtomicInteger();

    public int made() {
      return made.get();
    }

    @Cacheable("pages")
    public String page(int number) {
      made.incrementAndGet();
      return number + PAGE;
    }

    @Cacheable("pages")
    public String none(String name) {
      made.incrementAndGet();
      return null;
    }

    @Cacheable(value = "synced", sync = true)
    public String synced(int number) {
      made.incrementAndGet();
      return number + PAGE;
    }

    @Cacheable("texts")
    public String strange(String name) {
      made.incrementAndGet();
      return ENVELOPE;
    }

    @Cacheable("texts")
    public String text(int number) {
      made.incrementAndGet();
      return number + PAGE;
    }
  }

  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  @EnableCaching
  static class Application {
    @Bean
    Pages pages() {
      return new Pages();
    }

    @Bean
    RedisCacheManagerBuilderCustomizer texts() {
      return builder ->
          builder.withCacheConfiguration(
              "texts",
              RedisCacheConfiguration.defaultCacheConfig()
                  .serializeValuesWith(SerializationPair.fromSerializer(RedisSerializer.string())));
    }
  }

  @Configuration(proxyBeanMethods = false)
  static class WithLz4 {
    @Bean
    CompressionConfiguration compression() {
      return CompressionConfiguration.builder().backend(CompressionBackend.LZ4).build();
    }
  }

  @Configuration(proxyBeanMethods = false)
  static class WithManager {
    @Bean
    RedisCacheManager caches(
        RedisConnectionFactory connections,
        ObjectProvider<RedisCacheManagerBuilderCustomizer> customizers) {
      RedisCacheManagerBuilder caches =
          RedisCacheManager.builder(connections)
              .cacheDefaults(
                  RedisCacheConfiguration.defaultCacheConfig().prefixCacheNameWith("mine:"));
      customizers.orderedStream().forEach(each -> each.customize(caches));
      return caches.build();
    }
  }

  @BeforeAll
  static void start() {
    server = Server.valkey();
  }

  @AfterAll
  static void stop() {
    if (server != null) {
      server.close();
    }
  }

  @BeforeEach
  void connect() {
    plain = server.connect();
    plain.command("FLUSHALL");
  }

  @AfterEach
  void close() {
    applications.forEach(ConfigurableApplicationContext::close);
    plain.close();
  }

  private ConfigurableApplicationContext run(String... properties) {
    return run(List.of(Application.class), properties);
  }

  private ConfigurableApplicationContext run(List<Class<?>> sources, String... properties) {
    ConfigurableApplicationContext application = Applications.run(server, sources, properties);
    applications.add(application);
    return application;
  }

  /** The stored value; caches write some time after they were asked to. */
  private byte[] stored(String key) {
    Waiting.until(key + " is stored", () -> plain.bytes("GET", key) != null);
    return plain.bytes("GET", key);
  }

  private Encoding encodingAt(String key) {
    return Applications.encodingAt(plain, key);
  }

  @Test
  void cachesAreCompressedWithoutAnySetting() {
    ConfigurableApplicationContext application = run();
    Pages pages = application.getBean(Pages.class);
    pages.page(1);
    pages.text(2);
    assertEquals(Encoding.ZSTD, encodingAt("pages::1"));
    assertEquals(Encoding.ZSTD, encodingAt("texts::2"));
    assertEquals(1 + PAGE, pages.page(1));
    assertEquals(2 + PAGE, pages.text(2));
    assertEquals(2, pages.made());
    Codec codec = application.getBean(Codec.class);
    assertEquals(2 + PAGE, new String(codec.decode(stored("texts::2")), UTF_8));
    assertEquals(2, codec.statistics().total(Counter.ENCODED_VALUES));
    application.getBean(StringRedisTemplate.class).opsForValue().set("page", PAGE);
    assertEquals(PAGE, plain.text("GET", "page"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"snugly.connections=false", "snugly.connections=true"})
  void anEntryThatCannotBeReadIsMadeAnew(String connections) {
    ConfigurableApplicationContext application = run(connections);
    Pages pages = application.getBean(Pages.class);
    for (String key : List.of("pages::1", "synced::2")) {
      plain.command("SET", key, new byte[] {0, 1, 2, 0, 1, 9, 9, 9, 9});
    }
    assertEquals(1 + PAGE, pages.page(1));
    assertEquals(2 + PAGE, pages.synced(2));
    assertEquals(2, pages.made());
    for (String key : List.of("pages::1", "synced::2")) {
      Waiting.until(key + " is stored anew", () -> plain.bytes("GET", key).length > 9);
    }
    assertEquals(1 + PAGE, pages.page(1));
    assertEquals(2 + PAGE, pages.synced(2));
    assertEquals(2, pages.made());
  }

  @Test
  void whatStrangersHaveMadeIsWrapped() {
    ConfigurableApplicationContext application = run("snugly.connections=true");
    StringRedisTemplate template = application.getBean(StringRedisTemplate.class);
    template.opsForValue().set("text", ENVELOPE);
    assertEquals(ENVELOPE, template.opsForValue().get("text"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"snugly.connections=false", "snugly.connections=true"})
  void aTextThatIsAnEnvelopeComesBackFromACacheAsItWas(String connections) {
    Pages pages = run(connections).getBean(Pages.class);
    assertEquals(ENVELOPE, pages.strange("x"));
    assertEquals(Encoding.ZSTD, encodingAt("texts::x"));
    assertEquals(ENVELOPE, pages.strange("x"));
    assertEquals(1, pages.made());
  }

  @Test
  void connectionsLeaveValuesOfExcludedKeysAlone() {
    StringRedisTemplate template =
        run("snugly.connections=true", "snugly.exclude=lock:*,token:?")
            .getBean(StringRedisTemplate.class);
    template.opsForValue().multiSet(Map.of("lock:1", PAGE, "token:1", PAGE, "page", PAGE));
    assertEquals(PAGE, plain.text("GET", "lock:1"));
    assertEquals(PAGE, plain.text("GET", "token:1"));
    assertEquals(Encoding.ZSTD, encodingAt("page"));
  }

  @Test
  void keysAreExcludedWhereConnectionsCompress() {
    Applications.assertFails(
        "exclude is [lock:*], but a cache without snugly.connections=true does not know the keys",
        () -> run("snugly.exclude=lock:*"));
  }

  @Test
  void aNullThatIsCachedIsReadAsNull() {
    Pages pages = run().getBean(Pages.class);
    assertNull(pages.none("x"));
    stored("pages::x");
    assertNull(pages.none("x"));
    assertEquals(1, pages.made());
  }

  @ParameterizedTest
  @ValueSource(strings = {"snugly.enabled=false", "snugly.caches=false"})
  void cachesAreLeftAloneWhereThatIsChosen(String property) {
    run(property).getBean(Pages.class).text(1);
    assertArrayEquals((1 + PAGE).getBytes(UTF_8), stored("texts::1"));
  }

  @Test
  void aReaderReadsWhatWritersCompressAndCompressesNothing() {
    run().getBean(Pages.class).text(1);
    assertEquals(Encoding.ZSTD, encodingAt("texts::1"));
    Pages reader = run("snugly.backend=none").getBean(Pages.class);
    assertEquals(1 + PAGE, reader.text(1));
    assertEquals(0, reader.made());
    reader.text(2);
    assertEquals(Encoding.IDENTITY, encodingAt("texts::2"));
  }

  @Test
  void propertiesSayHow() {
    run("snugly.backend=lz4", "snugly.compression-level=3", "snugly.min-compression-size=1KB")
        .getBean(Pages.class)
        .text(1);
    assertEquals(Encoding.LZ4, encodingAt("texts::1"));
    run("snugly.min-compression-size=2KB").getBean(Pages.class).text(2);
    assertEquals(Encoding.IDENTITY, encodingAt("texts::2"));
  }

  @ParameterizedTest
  @CsvSource({
    "snugly.compression-level=99, compressionLevel is 99",
    "snugly.max-decompressed-size=2GB, max-decompressed-size is 2147483648",
    "snugly.max-decompressed-size=-1B, maxDecompressedSize is -1",
    "snugly.min-compression-size=4GB, min-compression-size is 4294967296"
  })
  void aPropertyOutOfRangeIsRefused(String property, String message) {
    Applications.assertFails(message, () -> run(property));
  }

  @Test
  void theCatalogueIsForConnectionsThatCompress() {
    Applications.assertFails(
        "catalogue is true, which needs connections that compress",
        () -> run("snugly.catalogue=true"));
  }

  @Test
  void cachesOfAManagerOfTheApplicationsOwnAreCompressedOnceItIsCustomized() {
    run(List.of(Application.class, WithManager.class)).getBean(Pages.class).page(1);
    assertEquals(Encoding.ZSTD, encodingAt("mine:pages::1"));
  }

  @Test
  void aConfigurationOfTheApplicationsOwnIsUsed() {
    run(List.of(Application.class, WithLz4.class)).getBean(Pages.class).text(1);
    assertEquals(Encoding.LZ4, encodingAt("texts::1"));
  }

  @Test
  void connectionsCompressByCommandsWhereThatIsChosen() {
    ConfigurableApplicationContext application = run("snugly.connections=true");
    SnuglyLettuceConnectionFactory factory =
        assertInstanceOf(
            SnuglyLettuceConnectionFactory.class,
            application.getBean(RedisConnectionFactory.class));
    StringRedisTemplate template = application.getBean(StringRedisTemplate.class);
    template.opsForValue().multiSet(Map.of("a", PAGE, "b", "short"));
    assertEquals(Encoding.ZSTD, encodingAt("a"));
    assertEquals(List.of(PAGE, "short"), template.opsForValue().multiGet(List.of("a", "b")));
    template.opsForSet().add("set", PAGE);
    assertEquals(1L, plain.command("SISMEMBER", "set", PAGE));
    assertEquals(3, template.opsForValue().increment("number", 3));
    Exception refused =
        assertThrows(Exception.class, () -> template.opsForValue().append("a", "more"));
    assertTrue(
        Stream.iterate((Throwable) refused, each -> each != null, Throwable::getCause)
            .anyMatch(CommandRefusedException.class::isInstance),
        refused::toString);
    Pages pages = application.getBean(Pages.class);
    pages.page(1);
    assertEquals(Encoding.ZSTD, encodingAt("pages::1"));
    assertEquals(1 + PAGE, pages.page(1));
    assertEquals(1, pages.made());
    assertEquals(2, factory.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD));
  }

  @Test
  void connectionsGoBackToNoCompressionByTheBackendAloneAndReadWithDictionaries() {
    Dictionary profiles = Dictionary.of(Vectors.dictionary("profiles"));
    Codec writer = new Codec(CompressionConfiguration.builder().dictionary(profiles).build());
    plain.command("SET", "{snugly}:dict:" + profiles.id(), profiles.bytes());
    plain.command("SET", "user:1", writer.encode(USER.getBytes(UTF_8)));
    assertEquals(Encoding.ZSTD_DICTIONARY, encodingAt("user:1"));
    StringRedisTemplate template =
        run(
                "snugly.connections=true",
                "snugly.catalogue=true",
                "snugly.compression-level=9",
                "snugly.backend=none")
            .getBean(StringRedisTemplate.class);
    assertEquals(USER, template.opsForValue().get("user:1"));
    template.opsForValue().set("user:2", USER);
    assertEquals(USER, plain.text("GET", "user:2"));
  }

  @Test
  void pipelinesTransactionsAndReactiveTemplatesAreRestored() {
    ConfigurableApplicationContext application = run("snugly.connections=true");
    StringRedisTemplate template = application.getBean(StringRedisTemplate.class);
    SessionCallback<Object> commands =
        new SessionCallback<>() {
          @Override
          @SuppressWarnings("unchecked") // The template's types are those of its operations.
          public <K, V> Object execute(RedisOperations<K, V> operations) {
            RedisOperations<String, String> texts = (RedisOperations<String, String>) operations;
            texts.opsForValue().set("page", PAGE);
            texts.opsForValue().get("page");
            return null;
          }
        };
    assertEquals(PAGE, template.executePipelined(commands).get(1));
    SessionCallback<List<Object>> transaction =
        new SessionCallback<>() {
          @Override
          public <K, V> List<Object> execute(RedisOperations<K, V> operations) {
            operations.multi();
            commands.execute(operations);
            return operations.exec();
          }
        };
    assertEquals(PAGE, template.execute(transaction).get(1));
    ReactiveStringRedisTemplate reactive = application.getBean(ReactiveStringRedisTemplate.class);
    assertEquals(PAGE, reactive.opsForValue().get("page").block());
  }

  @Test
  @Tag("slow")
  void connectionsToAClusterCompress() {
    try (Cluster cluster = Cluster.start(3)) {
      ConfigurableApplicationContext application =
          run(
              "snugly.connections=true",
              "spring.data.redis.cluster.nodes=127.0.0.1:" + cluster.nodes().get(0).port());
      StringRedisTemplate template = application.getBean(StringRedisTemplate.class);
      template.opsForValue().multiSet(Map.of("a", PAGE, "b", PAGE, "c", PAGE));
      assertEquals(
          List.of(PAGE, PAGE, PAGE), template.opsForValue().multiGet(List.of("a", "b", "c")));
      SnuglyLettuceConnectionFactory factory =
          application.getBean(SnuglyLettuceConnectionFactory.class);
      assertEquals(3, factory.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD));
      application.close();
    }
  }

  @Test
  void aSentinelNamesThePrimary() {
    try (Server sentinel = Server.sentinel(server)) {
      ConfigurableApplicationContext application =
          run(
              "snugly.connections=true",
              "spring.data.redis.sentinel.master=cache",
              "spring.data.redis.sentinel.nodes=127.0.0.1:" + sentinel.port());
      application.getBean(StringRedisTemplate.class).opsForValue().set("page", PAGE);
      assertEquals(Encoding.ZSTD, encodingAt("page"));
      application.close();
    }
  }

  @Test
  void aPrimaryAndItsReplicasAreConnectedToAsBefore() {
    StringRedisTemplate template =
        run(
                "snugly.connections=true",
                "spring.data.redis.masterreplica.nodes=127.0.0.1:" + server.port())
            .getBean(StringRedisTemplate.class);
    template.opsForValue().set("page", PAGE);
    assertEquals(PAGE, template.opsForValue().get("page"));
    assertEquals(Encoding.ZSTD, encodingAt("page"));
  }

  @Test
  void connectionsReadGzipFilesWhereThatIsChosen() {
    plain.command("SET", "old", GzipFile.of(PAGE));
    StringRedisTemplate template =
        run("snugly.connections=true", "snugly.read-gzip=true").getBean(StringRedisTemplate.class);
    assertEquals(PAGE, template.opsForValue().get("old"));
  }

  @Test
  void cachesReadGzipFilesWhereThatIsChosen() {
    plain.command("SET", "texts::1", GzipFile.of(PAGE));
    Pages reader = run("snugly.read-gzip=true").getBean(Pages.class);
    assertEquals(PAGE, reader.text(1));
    assertEquals(0, reader.made());
    reader.text(2);
    assertEquals(Encoding.ZSTD, encodingAt("texts::2"));
  }

  @Test
  void settingsOfTheReplacedFactoryStay() {
    ConfigurableApplicationContext application =
        run(
            "snugly.connections=true",
            "spring.data.redis.database=3",
            "spring.data.redis.client-name=shop",
            "spring.data.redis.timeout=7s");
    SnuglyLettuceConnectionFactory factory =
        application.getBean(SnuglyLettuceConnectionFactory.class);
    application.getBean(StringRedisTemplate.class).opsForValue().set("page", PAGE);
    assertEquals(3, factory.getDatabase());
    assertEquals(7000, factory.getTimeout());
    assertTrue(plain.text("CLIENT", "LIST").contains("name=shop"));
    plain.command("SELECT", 3);
    assertEquals(Encoding.ZSTD, encodingAt("page"));
  }
}
