package cache

import (
	"context"
	"errors"
	"slices"
	"strings"
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
func onCompressing(t *testing.T, options compression.Options, test func(*testing.T, deployment)) {
	both := func(t *testing.T, raw, hooked redis.UniversalClient, addresses ...string) {
		t.Run("go-redis", func(t *testing.T) {
			compressor := must[*compression.Compressor](t)(goredis.Compress(hooked, options))
			t.Cleanup(compressor.Close)
			test(t, deployment{goredis.Backend(hooked), raw})
		})
		t.Run("valkey-go", func(t *testing.T) {
			client := must[*valkeygo.Client](t)(valkeygo.Compress(valkeyGoTo(t, addresses...), options))
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
	onCompressing(t, compression.Options{}, func(t *testing.T, on deployment) {
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
	onCompressing(t, compression.Options{}, func(t *testing.T, on deployment) {
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
	onCompressing(t, compression.Options{}, func(t *testing.T, on deployment) {
		pages := newCache[string](t, on, Options{Prefix: t.Name()})
		check(t, on.raw.Set(ctx, pages.Key("bad"), "\x00\x01\x02\x00\x01damaged", 0).Err())
		check(t, on.raw.LPush(ctx, pages.Key("list"), 1).Err())
		if got, err := pages.GetMany(ctx, "bad", "list", "nothing"); err == nil || got != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestEntriesBeyondTheLimitOfTheClientAreNotReadInTheCacheInstead(t *testing.T) {
	const limit = 25_000
	onCompressing(t, compression.Options{MaxReplyBytes: limit}, func(t *testing.T, on deployment) {
		var told []string
		options := Options{Prefix: "{" + t.Name() + "}:", Codec: JSON, OnUndecodable: envelope.Raise, OnError: func(key string, err error) {
			isTooLarge(t, err)
			told = append(told, key)
		}}
		raising := newCache[string](t, on, options)
		options.OnUndecodable = envelope.Miss
		missing := newCache[string](t, on, options)
		long, longest := strings.Repeat("a", limit/5*2), strings.Repeat("a", limit)
		check(t, raising.SetMany(ctx, map[string]string{"1": long, "2": long, "3": long, "longest": longest}))

		got, err := raising.GetMany(ctx, "1", "nothing", "2", "3")
		isTooLarge(t, err)
		if len(got) != 2 || got["1"] != long || got["2"] != long {
			t.Errorf("%d came back", len(got))
		}
		if got := must[map[string]string](t)(missing.GetMany(ctx, "1", "nothing", "2", "3")); len(got) != 2 || !slices.Equal(told, []string{"3"}) {
			t.Errorf("%d came back, and %q was told", len(got), told)
		}
		_, err = raising.Get(ctx, "longest")
		isTooLarge(t, err)
		if _, err := missing.Get(ctx, "longest"); !errors.Is(err, ErrMiss) {
			t.Errorf("got %v", err)
		}
		for _, stale := range []time.Duration{0, time.Minute} {
			options.Stale = stale
			value := must[string](t)(newCache[string](t, on, options).GetOrLoad(ctx, "longest", func(context.Context) (string, error) { return longest, nil }))
			if value != longest {
				t.Errorf("%d bytes were loaded", len(value))
			}
		}
		if counted := raising.Statistics(); counted.BackendFailures != 0 || counted.DecodeFailures != 2 || counted.Hits != 2 {
			t.Errorf("%+v was counted", counted)
		}
	})
}

// isTooLarge fails the test if an error is not that of an entry which is too large.
func isTooLarge(t *testing.T, err error) {
	t.Helper()
	failure, cause := (*DecodeError)(nil), (*envelope.UndecodableError)(nil)
	if !errors.As(err, &failure) || !errors.As(err, &cause) || cause.Kind != envelope.TooLarge || cause.Key != failure.Key {
		t.Errorf("got %v", err)
	}
}

func TestTheEntriesOfOneReplyAreReadWithinALimit(t *testing.T) {
	on := onValkey(t)
	const limit = 25_000
	options := Options{Prefix: t.Name(), Codec: JSONZstd, MaxReplyBytes: limit, OnUndecodable: envelope.Raise}
	pages := newCache[string](t, on, options)
	long := strings.Repeat("a", limit/5*2)
	check(t, pages.SetMany(ctx, map[string]string{"1": long, "2": long, "3": long, "longest": long + long + long}))
	got, err := pages.GetMany(ctx, "1", "2", "3")
	isTooLarge(t, err)
	if len(got) != 2 {
		t.Errorf("%d came back", len(got))
	}
	_, err = pages.Get(ctx, "longest")
	isTooLarge(t, err)
	t.Run("which each reply has for itself", func(t *testing.T) {
		for range 5 {
			if value := must[string](t)(pages.Get(ctx, "1")); value != long {
				t.Errorf("%d bytes came back", len(value))
			}
		}
	})
	t.Run("unless there is to be none", func(t *testing.T) {
		options.MaxReplyBytes = Unlimited
		must[map[string]string](t)(newCache[string](t, on, options).GetMany(ctx, "1", "2", "3", "longest"))
	})
}
