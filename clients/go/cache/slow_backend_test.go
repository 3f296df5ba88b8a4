package cache

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

// pauseWrites has a server answer no commands that write until what is returned is called.
func pauseWrites(t *testing.T, address string) (resume func()) {
	t.Helper()
	servers.Ask(t, address, "CLIENT", "PAUSE", "600000", "WRITE")
	return func() { servers.Ask(t, address, "CLIENT", "UNPAUSE") }
}

// awaitWriter waits until somebody who writes waits for what is being stored.
func awaitWriter(t *testing.T, what string) {
	t.Helper()
	goroutines := make([]byte, 1<<22)
	servers.Eventually(t, what+" does not wait for what is being stored", func() bool {
		waiting := []byte("[select]:\nsnugly.dev/go/cache.(*flights[...]).overtake(")
		return bytes.Contains(goroutines[:runtime.Stack(goroutines, true)], waiting)
	})
}

// withEachClient runs a test with the default options of each client.
func withEachClient(t *testing.T, test func(t *testing.T, address string, backend Backend)) {
	t.Run("go-redis", func(t *testing.T) {
		address := servers.Valkey(t)
		test(t, address, goredis.Backend(goRedisTo(t, address)))
	})
	t.Run("valkey-go", func(t *testing.T) {
		address := servers.Valkey(t)
		test(t, address, valkeygo.Backend(valkeyGoTo(t, address)))
	})
}

func TestAServerThatStoresNothingHoldsNoCallerUp(t *testing.T) {
	withEachClient(t, func(t *testing.T, address string, backend Backend) {
		numbers := newCache[int](t, backend, Options{Codec: JSON, BackendTimeout: time.Hour})
		resume := pauseWrites(t, address)
		waiting, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if got := must[int](t)(numbers.GetOrLoad(waiting, "n", (&source{}).load)); got != 1 {
			t.Errorf("%d was loaded", got)
		}
		if isStored(numbers) {
			t.Error("the caller was held up until the client gave up storing")
		}
		resume()
		awaitStored(t, numbers)
		if got := must[int](t)(numbers.Get(ctx, "n")); got != 1 {
			t.Errorf("%d is stored", got)
		}
	})
}

func TestAValueThatIsNotStoredInTimeIsAnErrorForOnError(t *testing.T) {
	servers.Slow(t, "clients wait for timeouts of their own")
	withEachClient(t, func(t *testing.T, address string, backend Backend) {
		told := make(chan error, 1)
		numbers := newCache[int](t, backend, Options{Codec: JSON, BackendTimeout: 20 * time.Millisecond, OnError: func(_ string, err error) { told <- err }})
		pauseWrites(t, address)
		must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load))
		if err := <-told; !strings.Contains(err.Error(), "BackendTimeout of 20ms is over") {
			t.Errorf("%v was told", err)
		}
	})
}

func TestWritersLeaveWhenTheirContextEndsThoughALoadIsStoring(t *testing.T) {
	withEachClient(t, func(t *testing.T, address string, backend Backend) {
		numbers := newCache[int](t, backend, Options{Codec: JSON, BackendTimeout: time.Hour})
		resume := pauseWrites(t, address)
		must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load))
		for what, write := range map[string]func(context.Context) error{
			"Set":     func(ctx context.Context) error { return numbers.Set(ctx, "n", 99) },
			"SetMany": func(ctx context.Context) error { return numbers.SetMany(ctx, map[string]int{"m": 98, "n": 99}) },
			"Delete":  func(ctx context.Context) error { return numbers.Delete(ctx, "n") },
		} {
			leaving, leave := context.WithCancelCause(ctx)
			left := make(chan error)
			go func() { left <- write(leaving) }()
			awaitWriter(t, what)
			leave(errDown)
			if err := <-left; !errors.Is(err, errDown) {
				t.Errorf("%s: %v", what, err)
			}
		}
		// A caller that stays wins over a value that is being stored.
		deleted := make(chan error)
		go func() { deleted <- numbers.Delete(ctx, "n") }()
		resume()
		check(t, <-deleted)
		if _, err := numbers.Get(ctx, "n"); !errors.Is(err, ErrMiss) {
			t.Errorf("after Delete: %v", err)
		}
	})
}

func TestWhoWaitsForOneLoadWinsOverAnotherThatBeginsMeanwhile(t *testing.T) {
	// valkey-go would have all commands wait behind the one that is paused.
	address := servers.Valkey(t)
	numbers := newCache[int](t, goredis.Backend(goRedisTo(t, address)), Options{Codec: JSON, BackendTimeout: time.Hour})
	resume := pauseWrites(t, address)
	must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load))
	written, loaded := make(chan error), make(chan error)
	go func() { written <- numbers.SetMany(ctx, map[string]int{"m": 98, "n": 99}) }()
	// Otherwise the load is overtaken in any case.
	awaitWriter(t, "SetMany")
	entered, leave := make(chan struct{}), make(chan struct{})
	go func() {
		_, err := numbers.GetOrLoad(ctx, "m", func(context.Context) (int, error) {
			close(entered)
			<-leave
			return 1, nil
		})
		loaded <- err
	}()
	<-entered
	resume()
	err := <-written
	close(leave)
	check(t, err)
	check(t, <-loaded)
	awaitStored(t, numbers)
	if got := must[int](t)(numbers.Get(ctx, "m")); got != 98 {
		t.Errorf("%d is stored", got)
	}
}

func TestAServerThatAnswersNothingHoldsNoLoadUp(t *testing.T) {
	// go-redis waits for its ReadTimeout, whatever the context says.
	for _, stale := range []time.Duration{0, time.Minute} {
		address := servers.Valkey(t)
		numbers := newCache[int](t, valkeygo.Backend(valkeyGoTo(t, address)), Options{Codec: JSON, BackendTimeout: 20 * time.Millisecond, Stale: stale})
		// Not even what would end the pause is answered.
		servers.Ask(t, address, "CLIENT", "PAUSE", "600000", "ALL")
		from := &source{}
		if got := must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)); got != 1 {
			t.Errorf("%d was loaded", got)
		}
		// In the background, where another look comes first.
		numbers.revalidate(ctx, "m", from.load)
		servers.Eventually(t, "nothing is loaded in the background", func() bool { return from.calls.Load() == 2 })
	}
}

func TestATimeoutOfTheClientIsNotTakenForThatOfTheCache(t *testing.T) {
	client := redis.NewClient(&redis.Options{
		MaxRetries: -1, DialerRetries: 1,
		Dialer: func(_ context.Context, network, address string) (net.Conn, error) {
			return net.DialTimeout(network, address, time.Nanosecond)
		},
	})
	defer client.Close()
	told := make(chan error, 2)
	numbers := newCache[int](t, goredis.Backend(client), Options{
		Codec: JSON, BackendTimeout: time.Hour, OnError: func(_ string, err error) { told <- err },
	})
	if got := must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load)); got != 1 {
		t.Errorf("%d was loaded", got)
	}
	var timeout net.Error
	if err := <-told; !errors.As(err, &timeout) || !timeout.Timeout() || strings.Contains(err.Error(), "BackendTimeout") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatIsDownHoldsNoLoadUp(t *testing.T) {
	servers.Slow(t, "clients wait for timeouts of their own")
	for name, connect := range map[string]func(t *testing.T, address string) Backend{
		"go-redis":  func(t *testing.T, address string) Backend { return goredis.Backend(goRedisTo(t, address)) },
		"valkey-go": func(t *testing.T, address string) Backend { return valkeygo.Backend(valkeyGoTo(t, address)) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, stale := range []time.Duration{0, time.Minute} {
				var backend Backend
				t.Run("while it is up", func(up *testing.T) {
					address := servers.Valkey(up)
					backend = connect(t, address)
					must[[]byte](t)(backend.Get(ctx, "n"))
				})
				if backend == nil {
					t.Skip("there is no server")
				}
				numbers := newCache[int](t, backend, Options{Codec: JSON, Stale: stale, BackendTimeout: DefaultBackendTimeout})
				waiting, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				if got := must[int](t)(numbers.GetOrLoad(waiting, "n", (&source{}).load)); got != 1 {
					t.Errorf("%d was loaded", got)
				}
			}
		})
	}
}
