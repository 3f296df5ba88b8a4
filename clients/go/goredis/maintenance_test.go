package goredis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

// rare has rounds that no test waits for.
func rare(dictionary *envelope.Dictionary) compression.Options {
	return compression.Options{Dictionary: dictionary, DictionaryRefresh: 24 * time.Hour}
}

func TestAWriterPutsItsDictionaryBackBeforeItEnds(t *testing.T) {
	profiles := dictionary(t, "profiles")
	writer := open(t, servers.Valkey(t), rare(profiles))
	eventuallyWrites(t, writer.client, writer.plain, "key", profiles.ID())
	ok(t, writer.plain.FlushAll(ctx).Err())
	ok(t, writer.client.Set(ctx, "key", profile(1), 0).Err())
	same(t, usedBy(writer.plain, "key"), profiles.ID())
	writer.compressor.Close()
	same(t, writer.plain.Get(ctx, keyOf(profiles.ID())).Val(), string(profiles.Bytes()))
	reader := open(t, writer.plain.Options().Addr, compression.Options{})
	same(t, reader.client.Get(ctx, "key").Val(), profile(1))
}

func TestAWriterLooksForItsDictionaryWhenItHasConnectedAnew(t *testing.T) {
	profiles := dictionary(t, "profiles")
	writer := open(t, servers.Valkey(t), rare(profiles))
	eventuallyWrites(t, writer.client, writer.plain, "key", profiles.ID())
	ok(t, writer.plain.FlushAll(ctx).Err())
	ok(t, writer.plain.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err())
	servers.Eventually(t, "it was not put back", func() bool {
		ok(t, writer.client.Set(ctx, "key", profile(1), 0).Err())
		return writer.plain.Exists(ctx, keyOf(profiles.ID())).Val() == 1
	})
}

func TestEndingTakesNoLongerWhereTheServerSaysNothing(t *testing.T) {
	servers.Slow(t, "it measures time")
	profiles := dictionary(t, "profiles")
	writer := open(t, servers.Valkey(t), rare(profiles))
	eventuallyWrites(t, writer.client, writer.plain, "key", profiles.ID())
	ok(t, writer.plain.Do(ctx, "client", "pause", 60_000, "all").Err())
	started := time.Now()
	writer.compressor.Close()
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestWhatLiesInThePlaceOfADictionaryIsOverwritten(t *testing.T) {
	profiles := dictionary(t, "profiles")
	made := open(t, servers.Valkey(t), compression.Options{Dictionary: profiles, DictionaryRefresh: quick})
	eventuallyWrites(t, made.client, made.plain, "key", profiles.ID())
	// It is of another type.
	key := keyOf(profiles.ID())
	_, err := made.plain.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
		pipeline.Del(ctx, key)
		pipeline.RPush(ctx, key, "hello")
		return nil
	})
	ok(t, err)
	servers.Eventually(t, "it stays", func() bool { return made.plain.Get(ctx, key).Val() == string(profiles.Bytes()) })
	same(t, made.compressor.Statistics().DictionariesMended, uint64(1))
}

func TestDictionariesMayLiveInAnotherDatabase(t *testing.T) {
	address, profiles := servers.Valkey(t), dictionary(t, "profiles")
	in := func(number int) func(*redis.Options) { return func(settings *redis.Options) { settings.DB = number } }
	options := compression.Options{Dictionary: profiles, DictionaryRefresh: quick, DictionaryDatabase: compression.Database(0)}
	writer := open(t, address, options, in(3))
	eventuallyWrites(t, writer.client, writer.plain, "key", profiles.ID())
	same(t, writer.plain.Exists(ctx, keyOf(profiles.ID())).Val(), int64(0))
	same(t, open(t, address, compression.Options{}).plain.Exists(ctx, keyOf(profiles.ID())).Val(), int64(1))
	reader := open(t, address, compression.Options{DictionaryDatabase: compression.Database(0)}, in(3))
	same(t, reader.client.Get(ctx, "key").Val(), profile(1))
	elsewhere := open(t, address, compression.Options{}, in(3))
	if err := elsewhere.client.Get(ctx, "key").Err(); err == nil {
		t.Error("it was read with a dictionary of another database")
	}
	t.Run("which a cluster does not have", func(t *testing.T) {
		_, err := goredis.Compress(redis.NewClusterClient(&redis.ClusterOptions{}), options)
		if refused := (*envelope.OptionError)(nil); !errors.As(err, &refused) || refused.Option != "DictionaryDatabase" {
			t.Errorf("got %v", err)
		}
	})
}
