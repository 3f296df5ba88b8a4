package goredis_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/internal/vectors"
)

// quick is a refresh that tests can wait for.
const quick = 200 * time.Millisecond

// profiles and orders are dictionaries of the vectors.
func dictionary(t testing.TB, name string) *envelope.Dictionary {
	t.Helper()
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	loaded, err := envelope.LoadDictionary(read.Dictionaries[name].Bytes)
	ok(t, err)
	return loaded
}

// profile is a value that compresses with the dictionary of profiles.
func profile(number int) string {
	return fmt.Sprintf(`{"name": "name-%d", "email": "email-%d", "city": "city-%d", "country": "country-%d", "status": "status-%d"}`, number, number, number, number, number)
}

func keyOf(id uint32) string { return "{snugly}:dict:" + strconv.FormatUint(uint64(id), 10) }

// publish puts a dictionary beside the data, for the keys of a pattern, and more fields into the catalogue.
func publish(t testing.TB, plain redis.Cmdable, pattern string, dictionary *envelope.Dictionary, more string) {
	t.Helper()
	ok(t, plain.Set(ctx, keyOf(dictionary.ID()), dictionary.Bytes(), 0).Err())
	quoted, err := json.Marshal(pattern)
	ok(t, err)
	ok(t, plain.Set(ctx, "{snugly}:dicts", fmt.Sprintf(`{"version": 1, "active": [{"pattern": %s, "id": %d}], "dictionaries": [{"id": %d, "pattern": %s%s}]}`,
		quoted, dictionary.ID(), dictionary.ID(), quoted, more), 0).Err())
}

// usedBy is the ID of the dictionary that what a key holds needs; 0 for none.
func usedBy(plain redis.Cmdable, key string) uint32 {
	header, _ := envelope.Inspect([]byte(plain.Get(ctx, key).Val()))
	return header.Dictionary
}

// eventuallyWrites waits until values of a key are written with a dictionary.
func eventuallyWrites(t testing.TB, client, plain redis.Cmdable, key string, id uint32) {
	t.Helper()
	servers.Eventually(t, fmt.Sprintf("%s is not written with the dictionary %d", key, id), func() bool {
		ok(t, client.Set(ctx, key, profile(1), 0).Err())
		return usedBy(plain, key) == id
	})
	same(t, client.Get(ctx, key).Val(), profile(1))
}

func TestValuesAreWrittenWithTheDictionariesOfTheCatalogue(t *testing.T) {
	address := servers.Valkey(t)
	profiles := dictionary(t, "profiles")
	plain := open(t, address, compression.Options{}).plain
	publish(t, plain, "user:*", profiles, "")
	writer := open(t, address, compression.Options{UseCatalogue: true, DictionaryRefresh: quick, DictionaryExclude: []string{"user:secret:*"}})
	eventuallyWrites(t, writer.client, plain, "user:1", profiles.ID())
	for _, key := range []string{"order:1", "user:secret:1"} {
		ok(t, writer.client.Set(ctx, key, profile(1), 0).Err())
		same(t, usedBy(plain, key), uint32(0))
	}
	t.Run("and read by clients without any setting, once for all who wait", func(t *testing.T) {
		reader := open(t, address, compression.Options{Backend: envelope.None})
		var all sync.WaitGroup
		for range 16 {
			all.Add(1)
			go func() {
				defer all.Done()
				same(t, reader.client.Get(ctx, "user:1").Val(), profile(1))
			}()
		}
		all.Wait()
		same(t, reader.compressor.Statistics().DictionariesFetched, uint64(1))
	})
}

func TestLZ4IsWrittenWithTheSameDictionaries(t *testing.T) {
	profiles := dictionary(t, "profiles")
	for name, options := range map[string]compression.Options{
		"of the catalogue": {UseCatalogue: true}, "given": {Dictionary: profiles},
	} {
		t.Run(name, func(t *testing.T) {
			address := servers.Valkey(t)
			options.Backend, options.DictionaryRefresh = envelope.LZ4, quick
			writer := open(t, address, options)
			if options.UseCatalogue {
				publish(t, writer.plain, "user:*", profiles, "")
			}
			eventuallyWrites(t, writer.client, writer.plain, "user:1", profiles.ID())
			header, _ := envelope.Inspect([]byte(writer.plain.Get(ctx, "user:1").Val()))
			same(t, header.Name, "lz4_dictionary")
			reader := open(t, address, compression.Options{Backend: envelope.None})
			same(t, reader.client.Get(ctx, "user:1").Val(), profile(1))
			counted := reader.compressor.Statistics()
			same(t, []uint64{counted.DictionariesFetched, counted.LZ4Dictionary.DecodedValues}, []uint64{1, 1})
		})
	}
}

func TestWhoGoesBackToNoCompressionReadsWithDictionariesAndWritesWithout(t *testing.T) {
	address := servers.Valkey(t)
	profiles := dictionary(t, "profiles")
	writer := open(t, address, compression.Options{Dictionary: profiles, DictionaryRefresh: quick})
	eventuallyWrites(t, writer.client, writer.plain, "user:1", profiles.ID())
	writer.compressor.Close()
	ok(t, writer.plain.Del(ctx, keyOf(profiles.ID())).Err())
	none := open(t, address, compression.Options{Dictionary: profiles, DictionaryRefresh: quick, Backend: envelope.None, CompressionLevel: 9})
	same(t, none.client.Get(ctx, "user:1").Val(), profile(1))
	servers.Eventually(t, "it was not put back for others", func() bool { return none.plain.Exists(ctx, keyOf(profiles.ID())).Val() == 1 })
	publish(t, none.plain, "*", profiles, "")
	ofCatalogue := open(t, address, compression.Options{UseCatalogue: true, DictionaryRefresh: quick, Backend: envelope.None})
	same(t, ofCatalogue.client.Get(ctx, "user:1").Val(), profile(1))
	for _, each := range []redis.Cmdable{none.client, ofCatalogue.client} {
		ok(t, each.Set(ctx, "user:2", profile(2), 0).Err())
		same(t, none.plain.Get(ctx, "user:2").Val(), profile(2))
	}
}

func TestAGivenDictionaryIsPutBesideTheDataAndThenUsed(t *testing.T) {
	address := servers.Valkey(t)
	profiles := dictionary(t, "profiles")
	writer := open(t, address, compression.Options{Dictionary: profiles, DictionaryRefresh: quick})
	eventuallyWrites(t, writer.client, writer.plain, "anything", profiles.ID())
	same(t, writer.plain.Get(ctx, keyOf(profiles.ID())).Val(), string(profiles.Bytes()))
	same(t, writer.compressor.Statistics().DictionariesPutBack, uint64(1))
	t.Run("and put back after FLUSHALL", func(t *testing.T) {
		ok(t, writer.plain.FlushAll(ctx).Err())
		servers.Eventually(t, "it was not put back", func() bool { return writer.plain.Exists(ctx, keyOf(profiles.ID())).Val() == 1 })
	})
}

func TestReadersKeepWhatTheyHaveRead(t *testing.T) {
	address := servers.Valkey(t)
	profiles := dictionary(t, "profiles")
	reader := open(t, address, compression.Options{DictionaryRefresh: quick})
	stored, err := envelope.New(envelope.Options{Dictionaries: envelope.Only(profiles)})
	ok(t, err)
	ok(t, reader.plain.MSet(ctx, keyOf(profiles.ID()), profiles.Bytes(), "user:1", stored.Encode(nil, []byte(profile(1)))).Err())
	same(t, reader.client.Get(ctx, "user:1").Val(), profile(1))
	ok(t, reader.plain.Del(ctx, keyOf(profiles.ID())).Err())
	servers.Eventually(t, "it was not put back", func() bool { return reader.plain.Exists(ctx, keyOf(profiles.ID())).Val() == 1 })
}

func TestADictionaryThatIsNotThereIsAnErrorWithItsID(t *testing.T) {
	profiles := dictionary(t, "profiles")
	made := open(t, servers.Valkey(t), compression.Options{})
	store(t, made.plain, "user:1", 1, profiles)
	err := made.client.Get(ctx, "user:1").Err()
	var undecodable *envelope.UndecodableError
	if !errors.As(err, &undecodable) || undecodable.Kind != envelope.DictionaryMissing || undecodable.Dictionary != profiles.ID() || undecodable.Key != "user:1" {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("the key %q", keyOf(profiles.ID()))) {
		t.Errorf("%v does not say where it was looked for", err)
	}
}

func TestAFetchNeedsNoConnectionOfThePool(t *testing.T) {
	profiles := dictionary(t, "profiles")
	made := open(t, servers.Valkey(t), compression.Options{}, func(settings *redis.Options) {
		settings.PoolSize, settings.PoolTimeout = 1, time.Hour
	})
	writer, err := envelope.New(envelope.Options{Dictionaries: envelope.Only(profiles)})
	ok(t, err)
	ok(t, made.plain.MSet(ctx, keyOf(profiles.ID()), profiles.Bytes(), "user:1", writer.Encode(nil, []byte(profile(1)))).Err())
	ok(t, made.client.Watch(ctx, func(tx *redis.Tx) error {
		same(t, tx.Get(ctx, "user:1").Val(), profile(1))
		return nil
	}, "user:1"))
}

func TestWithoutPermissionDictionariesAreOff(t *testing.T) {
	address := servers.Valkey(t)
	profiles := dictionary(t, "profiles")
	plain := open(t, address, compression.Options{}).plain
	publish(t, plain, "*", profiles, "")
	ok(t, plain.Do(ctx, "acl", "setuser", "limited", "on", ">secret", "~user:*", "+@all").Err())
	var logged lockedBuffer
	options := compression.Options{UseCatalogue: true, DictionaryRefresh: quick, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	made := open(t, address, options, func(settings *redis.Options) { settings.Username, settings.Password = "limited", "secret" })
	ok(t, made.client.Set(ctx, "user:1", page(1), 0).Err())
	servers.Eventually(t, "there is no warning", func() bool { return strings.Contains(logged.String(), "dictionaries are off") })
	ok(t, made.client.Set(ctx, "user:1", page(1), 0).Err())
	expectStored(t, plain, "user:1", page(1))
	same(t, strings.Count(logged.String(), "WARN"), 1)
	ok(t, plain.Do(ctx, "acl", "setuser", "limited", "~*").Err())
	eventuallyWrites(t, made.client, plain, "user:1", profiles.ID())
}

func TestAReaderWithoutPermissionIsToldSoAndReadsAgainWithIt(t *testing.T) {
	profiles := dictionary(t, "profiles")
	plain := open(t, servers.Valkey(t), compression.Options{}).plain
	publish(t, plain, "*", profiles, "")
	store(t, plain, "user:1", 1, profiles)
	store(t, plain, "user:2", 2, unpublished(t, 1))
	ok(t, plain.Do(ctx, "acl", "setuser", "limited", "on", ">secret", "~user:*", "+@all").Err())
	reader := open(t, plain.Options().Addr, compression.Options{DictionaryRefresh: time.Second}, func(settings *redis.Options) {
		settings.Username, settings.Password = "limited", "secret"
	})
	_, err := reader.client.Pipelined(ctx, func(pipeline redis.Pipeliner) error {
		pipeline.Get(ctx, "user:1")
		pipeline.Get(ctx, "user:2")
		return nil
	})
	undecodable := (*envelope.UndecodableError)(nil)
	if !errors.As(err, &undecodable) || undecodable.Kind != envelope.DictionaryMissing || undecodable.Key != "user:1" ||
		!strings.Contains(err.Error(), "dictionaries are off, since the keys {snugly}:* may not be read: allow GET for them") {
		t.Errorf("got %v", err)
	}
	ok(t, plain.Do(ctx, "acl", "setuser", "limited", "~*").Err())
	servers.Eventually(t, "it is not read again", func() bool { return reader.client.Get(ctx, "user:1").Err() == nil })
	same(t, reader.client.Get(ctx, "user:1").Val(), profile(1))
}

// lockedBuffer is what a logger writes to while a test reads.
type lockedBuffer struct {
	mutex   sync.Mutex
	content bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.content.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.content.String()
}

func TestCopiesAreKeptInAFolder(t *testing.T) {
	address, folder := servers.Valkey(t), filepath.Join(t.TempDir(), "made")
	profiles := dictionary(t, "profiles")
	writer, err := envelope.New(envelope.Options{Dictionaries: envelope.Only(profiles)})
	ok(t, err)
	first := open(t, address, compression.Options{DictionaryFolder: folder})
	ok(t, first.plain.MSet(ctx, keyOf(profiles.ID()), profiles.Bytes(), "user:1", writer.Encode(nil, []byte(profile(1)))).Err())
	same(t, first.client.Get(ctx, "user:1").Val(), profile(1))
	first.compressor.Close()
	ok(t, first.plain.Del(ctx, keyOf(profiles.ID())).Err())
	second := open(t, address, compression.Options{DictionaryFolder: folder})
	same(t, second.client.Get(ctx, "user:1").Val(), profile(1))
	files, err := os.ReadDir(folder)
	same(t, len(good(t, files, err)), 1)
}

func TestNothingIsLookedAfterWhenTheClientIsClosed(t *testing.T) {
	profiles := dictionary(t, "profiles")
	made := open(t, servers.Valkey(t), compression.Options{Dictionary: profiles, DictionaryRefresh: quick})
	eventuallyWrites(t, made.client, made.plain, "key", profiles.ID())
	made.client.Close()
	servers.Eventually(t, "somebody still looks after dictionaries", func() bool {
		goroutines := make([]byte, 1<<20)
		return !bytes.Contains(goroutines[:runtime.Stack(goroutines, true)], []byte("catalogue.(*DictionaryManager).refreshLoop"))
	})
}

func TestDictionariesOfAClusterAreInOneSlot(t *testing.T) {
	servers.Slow(t, servers.ClusterTakesLong)
	cluster := servers.NewCluster(t, 3)
	profiles := dictionary(t, "profiles")
	open := func(options compression.Options) *redis.ClusterClient {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addresses})
		compressor, err := goredis.Compress(client, options)
		ok(t, err)
		t.Cleanup(func() { client.Close(); compressor.Close() })
		return client
	}
	plain := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addresses})
	t.Cleanup(func() { plain.Close() })
	publish(t, plain, "*", profiles, "")
	writer := open(compression.Options{UseCatalogue: true, DictionaryRefresh: quick})
	for _, key := range []string{"user:1", "user:2", "user:3"} {
		eventuallyWrites(t, writer, plain, key, profiles.ID())
	}
	reader := open(compression.Options{DictionaryRefresh: quick})
	same(t, reader.Get(ctx, "user:1").Val(), profile(1))
	ok(t, plain.Del(ctx, keyOf(profiles.ID())).Err())
	servers.Eventually(t, "it was not put back", func() bool { return plain.Exists(ctx, keyOf(profiles.ID())).Val() == 1 })
}
