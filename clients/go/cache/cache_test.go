package cache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/benchmark/layout"
	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
)

var ctx = context.Background()

func TestValuesComeBackAndAreGoneWhenDeleted(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment) {
		pages := newCache[layout.Layouts](t, on, Options{Prefix: "page:", Codec: MsgpZstd})
		if _, err := pages.Get(ctx, "1"); !errors.Is(err, ErrMiss) {
			t.Errorf("before it is set: %v", err)
		}
		want := layout.Records(50)
		check(t, pages.Set(ctx, "1", want))
		if got := must[layout.Layouts](t)(pages.Get(ctx, "1")); !slices.Equal(got, want) {
			t.Errorf("%v came back", got)
		}
		stored := must[string](t)(on.raw.Get(ctx, "page:1").Result())
		if !envelope.Is([]byte(stored)) {
			t.Errorf("%.20q is stored", stored)
		}
		check(t, pages.Delete(ctx, "1", "2"))
		if _, err := pages.Get(ctx, "1"); !errors.Is(err, ErrMiss) {
			t.Errorf("after it was deleted: %v", err)
		}
		check(t, pages.Delete(ctx))
		if got := pages.Statistics(); got.Hits != 1 || got.Misses != 2 || got.Sets != 1 {
			t.Errorf("%+v was counted", got)
		}
	})
}

func TestManyValuesComeAndGoTogether(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment) {
		numbers := newCache[int](t, on, Options{Prefix: "n:", Version: 3, Codec: JSON, NegativeTTL: time.Minute, OnUndecodable: envelope.Raise})
		values := map[string]int{"1": 10, "2": 20, "3": 30}
		check(t, numbers.SetMany(ctx, values))
		check(t, numbers.SetMany(ctx, nil))
		check(t, on.raw.Set(ctx, "v3:n:unreadable", "{", 0).Err())
		if _, err := numbers.GetOrLoad(ctx, "nothing", func(context.Context) (int, error) { return 0, ErrNotFound }); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		awaitStored(t, numbers)
		got, err := numbers.GetMany(ctx, "1", "2", "3", "4", "nothing", "unreadable")
		if !maps.Equal(got, values) {
			t.Errorf("%v came back", got)
		}
		failure := (*DecodeError)(nil)
		if !errors.As(err, &failure) || failure.Key != "v3:n:unreadable" {
			t.Errorf("of what cannot be read: %v", err)
		}
		if ttl := must[time.Duration](t)(on.raw.PTTL(ctx, "v3:n:2").Result()); ttl <= 0 || ttl > time.Minute {
			t.Errorf("it lives for %v", ttl)
		}
		check(t, numbers.Delete(ctx, "1", "2", "3", "nothing", "unreadable"))
		if got := must[map[string]int](t)(numbers.GetMany(ctx, "1", "2", "3", "nothing", "unreadable")); len(got) != 0 {
			t.Errorf("%v is left", got)
		}
		if got := must[map[string]int](t)(numbers.GetMany(ctx)); len(got) != 0 {
			t.Errorf("%v came for no key", got)
		}
	})
}

func TestEntriesLiveForTheirTimeLessTheJitter(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment) {
		lives := func(options Options, set func(*Cache[int]) error) time.Duration {
			options.Codec = JSON
			check(t, set(newCache[int](t, on, options)))
			ttl := must[time.Duration](t)(on.raw.PTTL(ctx, "n").Result())
			check(t, on.raw.Del(ctx, "n").Err())
			return ttl
		}
		set := func(cache *Cache[int]) error { return cache.Set(ctx, "n", 1) }
		seen := map[time.Duration]bool{}
		for range 20 {
			ttl := lives(Options{TTL: time.Hour, Jitter: 0.5}, set)
			if ttl > time.Hour || ttl < 29*time.Minute {
				t.Errorf("with a jitter of a half an entry lives for %v", ttl)
			}
			seen[ttl.Truncate(time.Second)] = true
		}
		if len(seen) < 2 {
			t.Error("all entries live equally long")
		}
		if ttl := lives(Options{TTL: time.Hour, Jitter: NoJitter, Stale: time.Hour}, set); ttl > 2*time.Hour || ttl < 119*time.Minute {
			t.Errorf("an entry that may be stale for an hour lives for %v", ttl)
		}
		if ttl := lives(Options{TTL: NoExpiry}, set); ttl != NoExpiry {
			t.Errorf("an entry without expiry lives for %v", ttl)
		}
		ttl := lives(Options{TTL: time.Hour}, func(cache *Cache[int]) error { return cache.SetFor(ctx, "n", 1, time.Minute) })
		if ttl > time.Minute || ttl < 50*time.Second {
			t.Errorf("an entry for a minute lives for %v", ttl)
		}
		if ttl := lives(Options{TTL: time.Hour}, func(cache *Cache[int]) error { return cache.SetFor(ctx, "n", 1, NoExpiry) }); ttl != NoExpiry {
			t.Errorf("an entry for ever lives for %v", ttl)
		}
	})
}

func TestTimesToLiveThatCannotBeStoreNothing(t *testing.T) {
	on := onValkey(t)
	numbers := newCache[int](t, on, Options{Codec: JSON})
	for _, ttl := range []time.Duration{0, -time.Hour, -time.Millisecond, time.Millisecond - 1} {
		failure := (*OptionError)(nil)
		if err := numbers.SetFor(ctx, "n", 1, ttl); !errors.As(err, &failure) || failure.Option != "TTL" || failure.Value != ttl {
			t.Errorf("%v: %v", ttl, err)
		}
	}
	if got := numbers.Statistics(); on.raw.Exists(ctx, "n").Val() != 0 || got.Sets != 0 {
		t.Errorf("%+v was counted", got)
	}
}

func TestVersionsLiveSideBySideAndWritesReachTheOldOnes(t *testing.T) {
	on := onValkey(t)
	before := newCache[int](t, on, Options{Prefix: "user:", Codec: JSON})
	second := newCache[int](t, on, Options{Prefix: "user:", Version: 2, Codec: JSON})
	third := newCache[int](t, on, Options{Prefix: "user:", Version: 3, OldVersions: []int{0, 2}, Codec: JSON})
	if third.Key("123:accounts") != "v3:user:123:accounts" || before.Key("1") != "user:1" {
		t.Errorf("the keys are %s and %s", third.Key("123:accounts"), before.Key("1"))
	}
	fill := func() {
		check(t, before.Set(ctx, "1", 1))
		check(t, second.Set(ctx, "1", 2))
	}
	isGone := func(what string, isExpected bool) {
		t.Helper()
		for _, cache := range []*Cache[int]{before, second} {
			if _, err := cache.Get(ctx, "1"); errors.Is(err, ErrMiss) != isExpected {
				t.Errorf("after a %s of the new version, %s is there: %v", what, cache.Key("1"), err)
			}
		}
	}
	fill()
	if _, err := third.Get(ctx, "1"); !errors.Is(err, ErrMiss) {
		t.Errorf("a new version sees an old entry: %v", err)
	}
	must[int](t)(third.GetOrLoad(ctx, "1", func(context.Context) (int, error) { return 3, nil }))
	awaitStored(t, third)
	isGone("load", false)
	check(t, third.Set(ctx, "1", 3))
	isGone("Set", true)
	fill()
	check(t, third.SetMany(ctx, map[string]int{"1": 3}))
	isGone("SetMany", true)
	fill()
	check(t, third.Delete(ctx, "1"))
	isGone("Delete", true)
}

func TestPlainJSONIsWrittenWhilePeopleDebug(t *testing.T) {
	on := onValkey(t)
	pages := newCache[layout.Layouts](t, on, Options{Codec: MsgpZstd, PlainJSON: true})
	stored := func() string {
		check(t, pages.Set(ctx, "page", layout.Records(3)))
		if got := must[layout.Layouts](t)(pages.Get(ctx, "page")); len(got) != 3 {
			t.Errorf("%v came back", got)
		}
		return must[string](t)(on.raw.Get(ctx, "page").Result())
	}
	if got := stored(); !strings.HasPrefix(got, `[{"BalanceInCents":42,`) || pages.Codec() != JSON {
		t.Errorf("%.20q is stored", got)
	}
	pages.WritePlainJSON(false)
	if got := stored(); !envelope.Is([]byte(got)) || pages.Codec() != MsgpZstd {
		t.Errorf("%.20q is stored", got)
	}
	pages.WritePlainJSON(true)
	if got := stored(); got[0] != '[' {
		t.Errorf("%.20q is stored", got)
	}
}

func TestAHookBelowTheCacheChangesNothingForIt(t *testing.T) {
	on := onValkey(t)
	hooked := redis.NewClient(&redis.Options{Addr: on.raw.(*redis.Client).Options().Addr})
	defer func() { _ = hooked.Close() }()
	compressor := must[*compression.Compressor](t)(goredis.Compress(hooked, compression.Options{Backend: envelope.LZ4}))
	defer compressor.Close()
	want := layout.Records(20)
	for _, codec := range fixed {
		pages := newCache[layout.Layouts](t, goredis.Backend(hooked), Options{Codec: codec, Prefix: codec.String()})
		check(t, pages.Set(ctx, "page", want))
		if got := must[layout.Layouts](t)(pages.Get(ctx, "page")); !slices.Equal(got, want) {
			t.Errorf("%v: %v came back", codec, got)
		}
		stored := []byte(must[string](t)(on.raw.Get(ctx, pages.Key("page")).Result()))
		header, isEnvelope := envelope.Inspect(stored)
		name := map[bool]string{true: "zstd", false: "lz4"}[codecs[codec].compresses]
		if !isEnvelope || header.Name != name {
			t.Errorf("%v is stored under %q", codec, header.Name)
		}
		// Without the hook: the envelope holds the value itself, not another envelope.
		if got := must[layout.Layouts](t)(pages.Decode(ctx, "page", stored)); !slices.Equal(got, want) {
			t.Errorf("%v: %v is stored", codec, got)
		}
	}
}

func TestWhatEncodeGivesIsWhatSetStoresAndDecodeReads(t *testing.T) {
	on := onValkey(t)
	for _, codec := range fixed {
		pages := newCache[layout.Layouts](t, on, Options{Codec: codec})
		want := layout.Records(20)
		stored := must[[]byte](t)(pages.Encode("page", want))
		check(t, pages.Set(ctx, "page", want))
		if got := must[string](t)(on.raw.Get(ctx, "page").Result()); got != string(stored) {
			t.Errorf("%v stores something else", codec)
		}
		if got := must[layout.Layouts](t)(pages.Decode(ctx, "page", stored)); !slices.Equal(got, want) {
			t.Errorf("%v: %v was read", codec, got)
		}
		if _, err := pages.Decode(ctx, "page", []byte{notFound}); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
}

func TestAValueWithoutAFormStoresNothing(t *testing.T) {
	on := onValkey(t)
	values := newCache[map[string]any](t, on, Options{Codec: JSON})
	failure := (*EncodeError)(nil)
	if err := values.Set(ctx, "bad", map[string]any{"a": func() {}}); !errors.As(err, &failure) || failure.Key != "bad" {
		t.Errorf("of one: %v", err)
	}
	if err := values.SetMany(ctx, map[string]map[string]any{"good": {}, "bad": {"a": func() {}}}); !errors.As(err, &failure) {
		t.Errorf("of several: %v", err)
	}
	if count := must[int64](t)(on.raw.DBSize(ctx).Result()); count != 0 {
		t.Errorf("%d entries are stored", count)
	}
}

func TestErrorsOfTheBackendAreReturned(t *testing.T) {
	on := onValkey(t)
	numbers := newCache[int](t, on, Options{Codec: JSON})
	check(t, on.raw.LPush(ctx, "list", 1).Err())
	_, err := numbers.Get(ctx, "list")
	isOf := func(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }
	if !isOf(err) {
		t.Errorf("Get: %v", err)
	}
	if values, err := numbers.GetMany(ctx, "nothing", "list"); !isOf(err) || values != nil {
		t.Errorf("GetMany: %v, %v", values, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for what, err := range map[string]error{
		"Set":     numbers.Set(cancelled, "n", 1),
		"SetMany": numbers.SetMany(cancelled, map[string]int{"n": 1}),
		"Delete":  numbers.Delete(cancelled, "n"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := numbers.Statistics().Sets; got != 0 {
		t.Errorf("%d values were counted that are not stored", got)
	}
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	if _, err := New[int](nil, Options{TTL: NoExpiry, Version: 1, OldVersions: []int{0, -3}}); err == nil {
		t.Error("there is a version -3")
	}
	for option, options := range map[string]Options{
		"TTL":              {},
		"Version":          {TTL: NoExpiry, Version: -1},
		"OldVersions":      {TTL: NoExpiry, Version: 2, OldVersions: []int{1, 2}},
		"Codec":            {TTL: NoExpiry, Codec: 9},
		"Goal":             {TTL: NoExpiry, Goal: "thrift"},
		"Jitter":           {TTL: NoExpiry, Jitter: 1.5},
		"Stale":            {TTL: NoExpiry, Stale: time.Second},
		"NegativeTTL":      {TTL: NoExpiry, NegativeTTL: -1},
		"LoadTimeout":      {TTL: NoExpiry, LoadTimeout: -1},
		"BackendTimeout":   {TTL: NoExpiry, BackendTimeout: -1},
		"RetryAfter":       {TTL: NoExpiry, RetryAfter: -1},
		"MaxReplyBytes":    {TTL: NoExpiry, MaxReplyBytes: -2},
		"MaxRevalidations": {TTL: NoExpiry, MaxRevalidations: -1},
	} {
		_, err := New[int](nil, options)
		failure := (*OptionError)(nil)
		if !errors.As(err, &failure) || failure.Option != option {
			t.Errorf("%s: %v", option, err)
		}
	}
}

func TestCodecsAreFoundByTheirNames(t *testing.T) {
	for _, codec := range append(fixed, Auto) {
		if got, err := ParseCodec(codec.String()); got != codec || err != nil {
			t.Errorf("%v: %v, %v", codec, got, err)
		}
	}
	if _, err := ParseCodec("gob"); err == nil {
		t.Error("gob is a codec")
	}
}
