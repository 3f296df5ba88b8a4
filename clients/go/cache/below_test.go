package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

// onCompressing runs a test with clients that compress, of one server and of a cluster.
func onCompressing(t *testing.T, test func(*testing.T, deployment)) {
	both := func(t *testing.T, raw, hooked redis.UniversalClient, addresses ...string) {
		t.Run("go-redis", func(t *testing.T) {
			compressor := must[*compression.Compressor](t)(goredis.Compress(hooked, compression.Options{}))
			t.Cleanup(compressor.Close)
			test(t, deployment{goredis.Backend(hooked), raw})
		})
		t.Run("valkey-go", func(t *testing.T) {
			client := must[*valkeygo.Client](t)(valkeygo.Compress(valkeyGoTo(t, addresses...), compression.Options{}))
			t.Cleanup(client.Compressor().Close)
			test(t, deployment{valkeygo.Backend(client), raw})
		})
	}
	t.Run("one server", func(t *testing.T) {
		address := servers.Valkey(t)
		both(t, goRedisTo(t, address), goRedisTo(t, address), address)
	})
	t.Run("cluster", func(t *testing.T) {
		servers.Slow(t, servers.ClusterTakesLong)
		addresses := servers.NewCluster(t, 3).Addresses
		both(t, clusterTo(t, addresses), clusterTo(t, addresses), addresses...)
	})
}

func TestADamagedEntryIsOnlyItselfAlsoWhereTheClientCompresses(t *testing.T) {
	onCompressing(t, func(t *testing.T, on deployment) {
		const damaged = "\x00\x01\x02\x00\x01damaged"
		var told atomic.Pointer[error]
		pages := newCache[string](t, on, Options{
			Prefix: t.Name(), Codec: JSONZstd, Stale: time.Minute, OnUndecodable: envelope.Raise, OnError: func(_ string, err error) { told.Store(&err) },
		})
		check(t, pages.SetMany(ctx, map[string]string{"1": "one", "2": "two"}))
		check(t, on.raw.Set(ctx, pages.Key("bad"), damaged, 0).Err())
		isDamage := func(what string, err error) {
			t.Helper()
			failure, cause := (*DecodeError)(nil), (*envelope.UndecodableError)(nil)
			if !errors.As(err, &failure) || failure.Key != pages.Key("bad") || string(failure.Stored) != damaged {
				t.Errorf("%s: %v", what, err)
			}
			if !errors.As(err, &cause) || cause.Kind != envelope.Corrupt {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := pages.Get(ctx, "bad")
		isDamage("Get", err)
		got, err := pages.GetMany(ctx, "1", "bad", "nothing", "2")
		isDamage("GetMany", err)
		if len(got) != 2 || got["1"] != "one" || got["2"] != "two" {
			t.Errorf("%v came back", got)
		}
		if value := must[string](t)(pages.GetOrLoad(ctx, "bad", func(context.Context) (string, error) { return "good", nil })); value != "good" {
			t.Errorf("%q was loaded", value)
		}
		isDamage("OnError", *told.Load())
		if counted := pages.Statistics(); counted.BackendFailures != 0 || counted.DecodeFailures != 3 {
			t.Errorf("%+v was counted", counted)
		}
		awaitStored(t, pages)
		if value := must[string](t)(pages.Get(ctx, "bad")); value != "good" {
			t.Errorf("%q is stored", value)
		}
	})
}

func TestAnEntryThatCannotBeReadIsAMiss(t *testing.T) {
	onCompressing(t, func(t *testing.T, on deployment) {
		told := map[string]int{}
		pages := newCache[string](t, on, Options{Prefix: t.Name(), OnError: func(key string, err error) {
			if failure := (*DecodeError)(nil); errors.As(err, &failure) {
				told[key]++
			}
		}})
		check(t, pages.Set(ctx, "good", "one"))
		check(t, on.raw.Set(ctx, pages.Key("damaged"), "\x00\x01\x02\x00\x01damaged", 0).Err())
		check(t, on.raw.Set(ctx, pages.Key("foreign"), "{", 0).Err())
		for _, key := range []string{"damaged", "foreign"} {
			if value, err := pages.Get(ctx, key); !errors.Is(err, ErrMiss) || value != "" {
				t.Errorf("%s: %q, %v", key, value, err)
			}
		}
		got := must[map[string]string](t)(pages.GetMany(ctx, "damaged", "good", "foreign"))
		if len(got) != 1 || got["good"] != "one" || told["damaged"] != 2 || told["foreign"] != 2 {
			t.Errorf("%v came back, %v was told", got, told)
		}
		if counted := pages.Statistics(); counted.DecodeFailures != 4 || counted.Misses != 4 || counted.Hits != 1 {
			t.Errorf("%+v was counted", counted)
		}
	})
}

func TestOtherErrorsBesideADamagedEntryAreReturned(t *testing.T) {
	onCompressing(t, func(t *testing.T, on deployment) {
		pages := newCache[string](t, on, Options{Prefix: t.Name()})
		check(t, on.raw.Set(ctx, pages.Key("bad"), "\x00\x01\x02\x00\x01damaged", 0).Err())
		check(t, on.raw.LPush(ctx, pages.Key("list"), 1).Err())
		if got, err := pages.GetMany(ctx, "bad", "list", "nothing"); err == nil || got != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}
