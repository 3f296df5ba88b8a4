package goredis_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
)

// patient has fetches that no test sees the end of.
var patient = compression.Options{DictionaryRefresh: time.Hour}

// unpublished is a dictionary that is nowhere; each number has its own.
func unpublished(t testing.TB, number uint32) *envelope.Dictionary {
	t.Helper()
	content := bytes.Clone(dictionary(t, "profiles").Bytes())
	binary.LittleEndian.PutUint32(content[len(content)-4:], number)
	binary.LittleEndian.PutUint32(content[4:], envelope.DictionaryID(content[8:]))
	loaded, err := envelope.LoadDictionary(content)
	return good(t, loaded, err)
}

// store puts a value at a key that is written with a dictionary.
func store(t testing.TB, plain *redis.Client, key string, number int, with *envelope.Dictionary) {
	t.Helper()
	codec, err := envelope.New(envelope.Options{Dictionaries: envelope.Only(with)})
	ok(t, err)
	ok(t, plain.Set(ctx, key, codec.Encode(nil, []byte(profile(number))), 0).Err())
}

// nameInCatalogue has the catalogue name dictionaries, which are not there.
func nameInCatalogue(t testing.TB, plain redis.Cmdable, missing ...*envelope.Dictionary) {
	t.Helper()
	rows := make([]string, len(missing))
	for at, each := range missing {
		rows[at] = fmt.Sprintf(`{"id": %d, "pattern": "*"}`, each.ID())
	}
	ok(t, plain.Set(ctx, "{snugly}:dicts", `{"version": 1, "dictionaries": [`+strings.Join(rows, ", ")+`]}`, 0).Err())
}

// counted is a number that INFO gives.
func counted(t testing.TB, plain *redis.Client, section, name string) int {
	t.Helper()
	found := regexp.MustCompile(name + `[:=](\d+)`).FindStringSubmatch(plain.Info(ctx, section).Val())
	if found == nil {
		return 0
	}
	number, err := strconv.Atoi(found[1])
	return good(t, number, err)
}

// isAtWork tells whether a goroutine is in a function of the catalogue.
func isAtWork(function string) bool {
	goroutines := make([]byte, 1<<22)
	return bytes.Contains(goroutines[:runtime.Stack(goroutines, true)], []byte("snugly.dev/go/catalogue."+function))
}

func TestDictionariesThatAreNotThereTakeOneConnectionForAsLongAsSomebodyWaits(t *testing.T) {
	made := open(t, servers.Valkey(t), patient, func(settings *redis.Options) { settings.PoolSize = 2 })
	const several = 10
	var missing []*envelope.Dictionary
	for number := range several {
		missing = append(missing, unpublished(t, uint32(number)))
		store(t, made.plain, fmt.Sprint("key:", number), number, missing[number])
	}
	nameInCatalogue(t, made.plain, missing...)
	ok(t, made.plain.ConfigResetStat(ctx).Err())
	waiting, leave := context.WithCancel(ctx)
	defer leave()
	var all sync.WaitGroup
	for number := range several {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := made.client.Get(waiting, fmt.Sprint("key:", number)).Err(); err == nil {
				t.Errorf("%d was read without its dictionary", number)
			}
		}()
	}
	servers.Eventually(t, "not every dictionary is asked for, again and again", func() bool {
		return counted(t, made.plain, "commandstats", "cmdstat_get:calls") >= 3*several
	})
	// Two of the pool, one beside it, and one of the client that asks.
	if connected := counted(t, made.plain, "clients", "connected_clients"); connected > 4 {
		t.Errorf("%d connections", connected)
	}
	leave()
	all.Wait()
	servers.Eventually(t, "the connection stays open", func() bool {
		return counted(t, made.plain, "clients", "connected_clients") <= 3
	})
	servers.Eventually(t, "somebody still looks", func() bool { return !isAtWork("(*DictionaryManager).search") })
}

func TestTheDictionariesThatOneReplyNeedsAreFetchedTogether(t *testing.T) {
	// Each way of reading two keys.
	ways := map[string]func(ctx context.Context, client *redis.Client, first, second string){
		"MGET": func(ctx context.Context, client *redis.Client, first, second string) { client.MGet(ctx, first, second) },
		"a command of one's own": func(ctx context.Context, client *redis.Client, first, second string) {
			client.Do(ctx, "mget", first, second)
		},
		"a pipeline": func(ctx context.Context, client *redis.Client, first, second string) {
			_, _ = client.Pipelined(ctx, func(pipeline redis.Pipeliner) error {
				pipeline.Get(ctx, first)
				pipeline.Get(ctx, second)
				return nil
			})
		},
		"a transaction": func(ctx context.Context, client *redis.Client, first, second string) {
			_, _ = client.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
				pipeline.Get(ctx, first)
				pipeline.Get(ctx, second)
				return nil
			})
		},
	}
	for name, read := range ways {
		t.Run(name, func(t *testing.T) {
			made := open(t, servers.Valkey(t), patient)
			published := unpublished(t, 2)
			store(t, made.plain, "never", 1, unpublished(t, 1))
			store(t, made.plain, "published", 2, published)
			nameInCatalogue(t, made.plain, unpublished(t, 1))
			ok(t, made.plain.Set(ctx, keyOf(published.ID()), published.Bytes(), 0).Err())
			waiting, leave := context.WithCancel(ctx)
			left := make(chan struct{})
			go func() { read(waiting, made.client, "never", "published"); close(left) }()
			servers.Eventually(t, "the second waits for the first", func() bool {
				return made.compressor.Statistics().DictionariesFetched == 1
			})
			leave()
			<-left
			same(t, made.client.Get(ctx, "published").Val(), profile(2))
		})
	}
}

func TestClosingEndsAFetchOfAServerThatSaysNothing(t *testing.T) {
	made := open(t, servers.Valkey(t), patient)
	store(t, made.plain, "key", 1, unpublished(t, 1))
	nameInCatalogue(t, made.plain, unpublished(t, 1))
	read := make(chan error)
	go func() { read <- made.client.Get(ctx, "key").Err() }()
	servers.Eventually(t, "nobody looks", func() bool { return isAtWork("") })
	ok(t, made.plain.Do(ctx, "client", "pause", 60_000, "all").Err())
	servers.Eventually(t, "nobody asks", func() bool { return isAtWork("send(") })
	made.compressor.Close()
	if isAtWork("send(") {
		t.Error("somebody still looks")
	}
	if err := <-read; err == nil {
		t.Error("a value was read without its dictionary")
	}
}
