package cache

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"snugly.dev/go/internal/servers"
)

// together has so many callers wait for one load, and gives what each got. The loader is called once the last waits.
func together[T any](t *testing.T, cache *Cache[T], callers int, load Loader[T]) []T {
	t.Helper()
	gate := make(chan struct{})
	got := make([]T, callers)
	var all sync.WaitGroup
	for caller := range got {
		all.Add(1)
		go func() {
			defer all.Done()
			got[caller] = must[T](t)(cache.GetOrLoad(ctx, "n", func(ctx context.Context) (T, error) {
				<-gate
				return load(ctx)
			}))
		}()
	}
	servers.Eventually(t, "not all wait for one load", func() bool {
		cache.loads.mu.Lock()
		defer cache.loads.mu.Unlock()
		current := cache.loads.inFlight["n"]
		return current != nil && current.waiting == callers
	})
	close(gate)
	all.Wait()
	return got
}

func TestThoseWhoShareALoadShareNoMemoryEvenWithoutCopies(t *testing.T) {
	profiles := newCache[profile](t, onValkey(t), Options{Codec: Msgp})
	got := together(t, profiles, 8, func(context.Context) (profile, error) {
		return profile{Picture: []byte("picture")}, nil
	})
	for _, each := range got {
		if !bytes.Equal(each.Picture, []byte("picture")) {
			t.Errorf("somebody got %q", each.Picture)
		}
		clear(each.Picture)
	}
}

func TestWhoFindsAnEntryForOthersSharesNoMemoryWithThem(t *testing.T) {
	profiles := newCache[profile](t, nil, Options{Codec: Msgp})
	found := entry{stored: must[[]byte](t)(profiles.Encode("n", profile{Picture: []byte("picture")}))}
	own := &flight[profile]{}
	if !profiles.take(ctx, "n", own, found) {
		t.Fatal("it was not taken")
	}
	clear(own.outcome.value.Picture)
	joined := must[profile](t)(profiles.copied(ctx, "n", own.outcome, nil))
	if !bytes.Equal(joined.Picture, []byte("picture")) {
		t.Errorf("another got %q", joined.Picture)
	}
}

func TestWhatHasNoFormThatCouldBeCopiedIsLoadedByEach(t *testing.T) {
	values := newCache[map[string]any](t, onValkey(t), Options{Codec: JSON})
	got := together(t, values, 8, func(context.Context) (map[string]any, error) {
		return map[string]any{"f": func() {}}, nil
	})
	for _, each := range got {
		if len(each) != 1 {
			t.Errorf("somebody got %v", each)
		}
		clear(each)
	}
	if counted := values.Statistics(); counted.Loads != 8 || counted.LoadsJoined != 7 {
		t.Errorf("%+v was counted", counted)
	}
}
