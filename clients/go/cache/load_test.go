package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

var errDown = errors.New("the database is down")

// source is where values come from: it counts its calls, and each waits for a permission if there is a gate.
type source struct {
	calls atomic.Int64
	gate  chan struct{}
}

func (s *source) load(ctx context.Context) (int, error) {
	call := int(s.calls.Add(1))
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return call, nil
}

// awaitStored waits until all that was loaded is stored, for which those who load do not wait.
func awaitStored[T any](t *testing.T, cache *Cache[T]) {
	t.Helper()
	servers.Eventually(t, "loads are still under way", func() bool { return isStored(cache) })
}

// isStored tells whether no load is under way any more, nor what it has loaded to be stored.
func isStored[T any](cache *Cache[T]) bool {
	cache.loads.mu.Lock()
	defer cache.loads.mu.Unlock()
	return len(cache.loads.inFlight) == 0
}

func TestAMissIsLoadedOnceAndThenFound(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment) {
		numbers := newCache[int](t, on, Options{Codec: JSON, Stale: time.Minute})
		from := &source{}
		for range 3 {
			if got := must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)); got != 1 {
				t.Errorf("%d was loaded", got)
			}
			awaitStored(t, numbers)
		}
		if got := must[string](t)(on.raw.Get(ctx, "n").Result()); got != "1" {
			t.Errorf("%q is stored", got)
		}
		if got := numbers.Statistics(); got.Loads != 1 || got.Hits != 2 || got.Misses != 1 || got.StaleHits != 0 {
			t.Errorf("%+v was counted", got)
		}
	})
}

func TestThoseWhoMissTogetherShareOneLoadAndGetCopiesOfTheirOwn(t *testing.T) {
	on := onValkey(t)
	lists := newCache[[]int](t, on, Options{Codec: JSON})
	gate := make(chan struct{})
	var calls atomic.Int64
	load := func(context.Context) ([]int, error) {
		calls.Add(1)
		<-gate
		return []int{1, 2, 3}, nil
	}
	var all sync.WaitGroup
	for caller := range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			got, err := lists.GetOrLoad(ctx, "list", load)
			if err != nil || !slices.Equal(got, []int{1, 2, 3}) {
				t.Errorf("%v, %v", got, err)
				return
			}
			got[0] = caller
		}()
	}
	servers.Eventually(t, "it has not come about that somebody loads", func() bool { return calls.Load() > 0 })
	close(gate)
	all.Wait()
	if calls.Load() != 1 {
		t.Errorf("it was loaded %d times", calls.Load())
	}
}

func TestTwoProcessesThatRaceLoadOnceEachAtMost(t *testing.T) {
	address := servers.Valkey(t)
	for round := range 20 {
		key := fmt.Sprint("n", round)
		var calls atomic.Int64
		var all sync.WaitGroup
		results := make([]int64, 40)
		var caches []*Cache[int64]
		for range 2 {
			caches = append(caches, newCache[int64](t, goredis.Backend(goRedisTo(t, address)), Options{Codec: JSON}))
		}
		for caller := range results {
			all.Add(1)
			go func() {
				defer all.Done()
				value, err := caches[caller%2].GetOrLoad(ctx, key, func(context.Context) (int64, error) {
					runtime.Gosched()
					return calls.Add(1), nil
				})
				if err != nil {
					t.Error(err)
				}
				results[caller] = value
			}()
		}
		all.Wait()
		for _, each := range caches {
			awaitStored(t, each)
		}
		if calls.Load() < 1 || calls.Load() > 2 {
			t.Errorf("two caches have loaded %d times", calls.Load())
		}
		last := must[int64](t)(caches[0].Get(ctx, key))
		for _, result := range results {
			if result < 1 || result > calls.Load() {
				t.Errorf("somebody got %d", result)
			}
		}
		if last < 1 || last > calls.Load() {
			t.Errorf("%d is stored", last)
		}
	}
}

func TestALoaderThatFailsStoresNothingAndIsAskedAgain(t *testing.T) {
	on := onValkey(t)
	numbers := newCache[int](t, on, Options{Codec: JSON, NegativeTTL: time.Minute})
	failing := func(context.Context) (int, error) { return 0, fmt.Errorf("cannot load: %w", errDown) }
	for range 2 {
		if _, err := numbers.GetOrLoad(ctx, "n", failing); !errors.Is(err, errDown) {
			t.Error(err)
		}
	}
	if _, err := numbers.Get(ctx, "n"); !errors.Is(err, ErrMiss) {
		t.Error(err)
	}
	if got := must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load)); got != 1 {
		t.Errorf("%d was loaded", got)
	}
	if got := numbers.Statistics(); got.Loads != 3 || got.LoadFailures != 2 {
		t.Errorf("%+v was counted", got)
	}
}

func TestALoaderThatPanicsDoesSoWhereItCanBeRecovered(t *testing.T) {
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON})
	defer func() {
		panicked, ok := recover().(*LoaderPanic)
		if !ok || panicked.Value != "ouch" || !strings.Contains(string(panicked.Stack), "load_test.go") {
			t.Errorf("recovered %v", panicked)
		}
	}()
	_, err := numbers.GetOrLoad(ctx, "n", func(context.Context) (int, error) { panic("ouch") })
	t.Errorf("it returned %v", err)
}

func TestALoaderThatEndsItsGoroutineIsAnError(t *testing.T) {
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON})
	_, err := numbers.GetOrLoad(ctx, "n", func(context.Context) (int, error) { runtime.Goexit(); return 1, nil })
	if !errors.Is(err, errLoaderExited) {
		t.Error(err)
	}
}

func TestWhatDoesNotExistIsRememberedIfThatIsWanted(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment) {
		for _, row := range []struct {
			ttl   time.Duration
			calls int64
		}{{0, 3}, {time.Minute, 1}} {
			numbers := newCache[int](t, on, Options{Codec: JSON, NegativeTTL: row.ttl, Stale: time.Hour})
			check(t, numbers.Delete(ctx, "n"))
			var calls atomic.Int64
			for range 3 {
				_, err := numbers.GetOrLoad(ctx, "n", func(context.Context) (int, error) {
					calls.Add(1)
					return 0, fmt.Errorf("no row: %w", ErrNotFound)
				})
				if !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
				awaitStored(t, numbers)
			}
			if calls.Load() != row.calls {
				t.Errorf("with a NegativeTTL of %v it was loaded %d times", row.ttl, calls.Load())
			}
		}
		if ttl := must[time.Duration](t)(on.raw.PTTL(ctx, "n").Result()); ttl <= 0 || ttl > time.Minute {
			t.Errorf("it is remembered for %v", ttl)
		}
		numbers := newCache[int](t, on, Options{Codec: JSON})
		if _, err := numbers.Get(ctx, "n"); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		check(t, numbers.Set(ctx, "n", 7))
		if got := must[int](t)(numbers.Get(ctx, "n")); got != 7 {
			t.Errorf("once it exists it is %d", got)
		}
	})
}

// stale stores 7 at n, as an entry that is fresh no more.
func stale(t *testing.T, on deployment, options Options) *Cache[int] {
	t.Helper()
	options.Codec, options.TTL, options.Stale, options.Jitter = JSON, time.Hour, time.Hour, NoJitter
	numbers := newCache[int](t, on, options)
	check(t, on.raw.Set(ctx, "n", "7", 30*time.Minute).Err())
	return numbers
}

func TestAStaleValueIsServedWhileOneLoadsTheNext(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment) {
		numbers := stale(t, on, Options{})
		from := &source{gate: make(chan struct{})}
		for range 20 {
			if got := must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)); got != 7 {
				t.Errorf("%d was served", got)
			}
		}
		close(from.gate)
		servers.Eventually(t, "it has not come about that the entry is fresh", func() bool { return on.raw.Get(ctx, "n").Val() == "1" })
		if got := must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)); got != 1 || from.calls.Load() != 1 {
			t.Errorf("%d was served after %d loads", got, from.calls.Load())
		}
		if got := numbers.Statistics(); got.StaleHits != 20 || got.Hits != 21 {
			t.Errorf("%+v was counted", got)
		}
		if ttl := must[time.Duration](t)(on.raw.PTTL(ctx, "n").Result()); ttl < time.Hour {
			t.Errorf("the new entry lives for %v", ttl)
		}
	})
}

func TestAnEntryThatAnotherProcessHasRenewedIsNotLoadedAgain(t *testing.T) {
	on := onValkey(t)
	numbers := stale(t, on, Options{})
	check(t, on.raw.Set(ctx, "n", "8", 90*time.Minute).Err())
	from := &source{}
	numbers.revalidate(ctx, "n", from.load)
	servers.Eventually(t, "it never ended", func() bool {
		numbers.revalidations.mu.Lock()
		defer numbers.revalidations.mu.Unlock()
		return len(numbers.revalidations.keys) == 0
	})
	if from.calls.Load() != 0 {
		t.Error("a fresh entry was loaded")
	}
}

func TestAStaleValueOutlivesALoaderThatFailsWhichIsNotAskedAtOnce(t *testing.T) {
	on := onValkey(t)
	var told atomic.Int64
	numbers := stale(t, on, Options{RetryAfter: time.Hour, OnError: func(key string, err error) {
		if key == "n" && errors.Is(err, errDown) {
			told.Add(1)
		}
	}})
	var calls atomic.Int64
	failing := func(context.Context) (int, error) { calls.Add(1); return 0, errDown }
	for range 3 {
		if got := must[int](t)(numbers.GetOrLoad(ctx, "n", failing)); got != 7 {
			t.Errorf("%d was served", got)
		}
		servers.Eventually(t, "it has not come about that the error was told", func() bool { return told.Load() == 1 })
		awaitStored(t, numbers)
	}
	if calls.Load() != 1 {
		t.Errorf("the loader was asked %d times", calls.Load())
	}
	numbers.revalidations.forget("n")
	must[int](t)(numbers.GetOrLoad(ctx, "n", failing))
	servers.Eventually(t, "it has not come about that it is asked again", func() bool { return calls.Load() == 2 })
}

func TestAPanicInTheBackgroundIsAnErrorLikeOthers(t *testing.T) {
	on := onValkey(t)
	told := make(chan error, 1)
	numbers := stale(t, on, Options{OnError: func(_ string, err error) { told <- err }})
	must[int](t)(numbers.GetOrLoad(ctx, "n", func(context.Context) (int, error) { panic("ouch") }))
	panicked := (*LoaderPanic)(nil)
	if err := <-told; !errors.As(err, &panicked) {
		t.Error(err)
	}
}

func TestAStaleValueThatDoesNotExistAnyMoreIsRemoved(t *testing.T) {
	on := onValkey(t)
	numbers := stale(t, on, Options{})
	must[int](t)(numbers.GetOrLoad(ctx, "n", func(context.Context) (int, error) { return 0, ErrNotFound }))
	servers.Eventually(t, "it has not come about that the entry is gone", func() bool { return on.raw.Exists(ctx, "n").Val() == 0 })
}

func TestOnlySoManyEntriesAreRenewedAtATime(t *testing.T) {
	on := onValkey(t)
	numbers := stale(t, on, Options{MaxRevalidations: 2})
	from := &source{gate: make(chan struct{})}
	for entry := range 5 {
		key := fmt.Sprint("n", entry)
		check(t, on.raw.Set(ctx, key, "7", time.Minute).Err())
		if got := must[int](t)(numbers.GetOrLoad(ctx, key, from.load)); got != 7 {
			t.Errorf("%d was served", got)
		}
	}
	servers.Eventually(t, "it has not come about that two are loaded", func() bool { return from.calls.Load() == 2 })
	close(from.gate)
	numbers.Close()
	if got := numbers.Statistics(); got.Loads != 2 || got.RevalidationsSkipped != 3 {
		t.Errorf("%+v was counted", got)
	}
}

func TestACallerWhoLeavesDoesNotDisturbTheOthers(t *testing.T) {
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON})
	from := &source{gate: make(chan struct{})}
	leaving, leave := context.WithCancelCause(ctx)
	left := make(chan error)
	go func() {
		_, err := numbers.GetOrLoad(leaving, "n", from.load)
		left <- err
	}()
	servers.Eventually(t, "it has not come about that the first loads", func() bool { return from.calls.Load() == 1 })
	got := make(chan int)
	go func() { got <- must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)) }()
	servers.Eventually(t, "it has not come about that the second waits", func() bool {
		numbers.loads.mu.Lock()
		defer numbers.loads.mu.Unlock()
		return numbers.loads.inFlight["n"].waiting == 2
	})
	leave(errDown)
	if err := <-left; !errors.Is(err, errDown) {
		t.Errorf("who leaves gets %v", err)
	}
	close(from.gate)
	if value := <-got; value != 1 {
		t.Errorf("who stays gets %d", value)
	}
}

func TestALoadThatNobodyWaitsForEnds(t *testing.T) {
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON})
	ended := make(chan error, 1)
	leaving, leave := context.WithCancelCause(ctx)
	_, err := numbers.GetOrLoad(leaving, "n", func(ctx context.Context) (int, error) {
		leave(errDown)
		<-ctx.Done()
		ended <- ctx.Err()
		return 0, ctx.Err()
	})
	if !errors.Is(err, errDown) || !errors.Is(<-ended, context.Canceled) {
		t.Error(err)
	}
	if got := must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load)); got != 1 {
		t.Errorf("the next load gives %d", got)
	}
}

func TestAPanicThatNobodyWaitsForIsAnErrorForOnError(t *testing.T) {
	told := make(chan error, 1)
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON, OnError: func(_ string, err error) { told <- err }})
	waiting, leave := context.WithCancel(ctx)
	_, err := numbers.GetOrLoad(waiting, "n", func(loading context.Context) (int, error) {
		leave()
		<-loading.Done()
		panic("no row")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the caller got %v", err)
	}
	panicked := (*LoaderPanic)(nil)
	if err := <-told; !errors.As(err, &panicked) || panicked.Value != "no row" {
		t.Errorf("OnError got %v", err)
	}
}

func TestWhatIsLoadedAfterEverybodyHasLeftIsNotStored(t *testing.T) {
	on := onValkey(t)
	numbers := newCache[int](t, on, Options{Codec: JSON, OnError: func(_ string, err error) { t.Error(err) }})
	began, gate := make(chan struct{}), make(chan struct{})
	leaving, leave := context.WithCancelCause(ctx)
	go func() { <-began; leave(errDown) }()
	_, err := numbers.GetOrLoad(leaving, "n", func(context.Context) (int, error) {
		close(began)
		<-gate
		return 1, nil
	})
	if !errors.Is(err, errDown) {
		t.Error(err)
	}
	check(t, numbers.Set(ctx, "n", 2))
	close(gate)
	numbers.Close()
	if got := on.raw.Get(ctx, "n").Val(); got != "2" {
		t.Errorf("%q is stored", got)
	}
}

func TestOnErrorMayDeleteWhatCouldNotBeStored(t *testing.T) {
	// Writes are refused but DEL, as there is no memory.
	raw := goRedisTo(t, servers.Valkey(t, "--maxmemory", "1"))
	deleted := make(chan error, 1)
	var numbers *Cache[int]
	numbers = newCache[int](t, goredis.Backend(raw), Options{Codec: JSON, OnError: func(key string, _ error) { deleted <- numbers.Delete(ctx, key) }})
	must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load))
	check(t, <-deleted)
}

func TestALoadThatTakesTooLongEnds(t *testing.T) {
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON, LoadTimeout: 10 * time.Millisecond})
	for says, why := range map[string]func(context.Context) error{
		"Options.LoadTimeout of 10ms is over: context deadline exceeded": context.Cause,
		"Options.LoadTimeout of 10ms is over: query: context deadline exceeded": func(ctx context.Context) error {
			return fmt.Errorf("query: %w", ctx.Err())
		},
		"the table is locked": func(context.Context) error { return errors.New("the table is locked") },
	} {
		_, err := numbers.GetOrLoad(ctx, "n", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, why(ctx)
		})
		if err == nil || err.Error() != says {
			t.Errorf("got %v, wanted %s", err, says)
		}
		if isLate := strings.HasPrefix(says, "Options"); errors.Is(err, context.DeadlineExceeded) != isLate {
			t.Errorf("%v is a deadline: %v", err, !isLate)
		}
	}
}

func TestADeadlineOfTheLoadersOwnIsNotTheLoadTimeout(t *testing.T) {
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON})
	_, err := numbers.GetOrLoad(ctx, "n", func(context.Context) (int, error) { return 0, context.DeadlineExceeded })
	if err != context.DeadlineExceeded {
		t.Error(err)
	}
}

func TestALoaderSeesTheValuesOfItsCallersContext(t *testing.T) {
	type name struct{}
	numbers := newCache[int](t, onValkey(t), Options{Codec: JSON})
	got := must[int](t)(numbers.GetOrLoad(context.WithValue(ctx, name{}, 5), "n", func(ctx context.Context) (int, error) {
		return ctx.Value(name{}).(int), nil
	}))
	if got != 5 {
		t.Errorf("it saw %d", got)
	}
}

func TestWhatIsWrittenDuringALoadIsNotOverwrittenByIt(t *testing.T) {
	on := onValkey(t)
	for what, write := range map[string]func(*Cache[int]) error{
		"Set":     func(numbers *Cache[int]) error { return numbers.Set(ctx, "n", 99) },
		"SetMany": func(numbers *Cache[int]) error { return numbers.SetMany(ctx, map[string]int{"n": 99}) },
		"Delete":  func(numbers *Cache[int]) error { return numbers.Delete(ctx, "n") },
	} {
		check(t, on.raw.Del(ctx, "n").Err())
		numbers := newCache[int](t, on, Options{Codec: JSON})
		from := &source{gate: make(chan struct{})}
		got := make(chan int)
		go func() { got <- must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)) }()
		servers.Eventually(t, "it has not come about that it loads", func() bool { return from.calls.Load() == 1 })
		check(t, write(numbers))
		after := on.raw.Get(ctx, "n").Val()
		close(from.gate)
		if value := <-got; value != 1 {
			t.Errorf("%s: who waited gets %d", what, value)
		}
		numbers.Close()
		if now := on.raw.Get(ctx, "n").Val(); now != after {
			t.Errorf("%s: %q became %q", what, after, now)
		}
		if numbers.Statistics().LoadsOvertaken != 1 {
			t.Errorf("%s: it was not counted", what)
		}
	}
}

func TestAnEntryThatCannotBeReadIsLoadedAndReplaced(t *testing.T) {
	on := onValkey(t)
	var told atomic.Pointer[error]
	numbers := newCache[int](t, on, Options{Codec: JSON, OnError: func(_ string, err error) { told.Store(&err) }})
	check(t, on.raw.Set(ctx, "n", "hello", 0).Err())
	if got := must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load)); got != 1 {
		t.Errorf("%d was loaded", got)
	}
	awaitStored(t, numbers)
	failure := (*DecodeError)(nil)
	if !errors.As(*told.Load(), &failure) || on.raw.Get(ctx, "n").Val() != "1" {
		t.Errorf("%v was told, %q is stored", *told.Load(), on.raw.Get(ctx, "n").Val())
	}
}

func TestABrokenBackendDoesNotBreakLoads(t *testing.T) {
	address := ""
	t.Run("a server that ends with this", func(t *testing.T) { address = servers.Valkey(t) })
	if address == "" {
		t.Skip("there was none")
	}
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	var told atomic.Int64
	numbers := newCache[int](t, goredis.Backend(client), Options{Codec: JSON, Stale: time.Second, OnError: func(string, error) { told.Add(1) }})
	from := &source{}
	for call := range 2 {
		if got := must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)); got != call+1 {
			t.Errorf("%d was loaded", got)
		}
		awaitStored(t, numbers)
	}
	numbers.Close()
	if got := numbers.Statistics(); got.BackendFailures != 4 || told.Load() != 4 {
		t.Errorf("%+v was counted, %d errors told", got, told.Load())
	}
	if _, err := numbers.Get(ctx, "n"); err == nil || errors.Is(err, ErrMiss) {
		t.Errorf("Get: %v", err)
	}
}

func TestAValueThatCannotBeStoredIsReturned(t *testing.T) {
	var told atomic.Int64
	values := newCache[func()](t, onValkey(t), Options{Codec: JSON, OnError: func(string, error) { told.Add(1) }})
	value := must[func()](t)(values.GetOrLoad(ctx, "f", func(context.Context) (func(), error) { return func() {}, nil }))
	if value == nil || told.Load() != 1 || values.Statistics().EncodeFailures != 1 {
		t.Error("it is nil, or nobody was told")
	}
}

func TestCloseEndsLoadsAndWaitsForThem(t *testing.T) {
	on := onValkey(t)
	numbers := newCache[int](t, on, Options{Codec: JSON})
	check(t, numbers.Set(ctx, "there", 7))
	from := &source{gate: make(chan struct{})}
	ended := make(chan error)
	go func() {
		_, err := numbers.GetOrLoad(ctx, "n", from.load)
		ended <- err
	}()
	servers.Eventually(t, "it has not come about that it loads", func() bool { return from.calls.Load() == 1 })
	numbers.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("who waited gets %v", err)
	}
	if _, err := numbers.GetOrLoad(ctx, "n", from.load); !errors.Is(err, ErrClosed) {
		t.Errorf("who comes later gets %v", err)
	}
	if got := must[int](t)(numbers.GetOrLoad(ctx, "there", from.load)); got != 7 {
		t.Errorf("what is there is %d", got)
	}
	numbers.Close()
}
