package cache

import (
	"context"
	"sync"
)

// flights are the loads under way, at most one for each key: others who want the same wait for it. (The package
// singleflight of golang.org/x/sync knows neither callers who leave nor writes that overtake a load.)
type flights[T any] struct {
	mu       sync.Mutex
	inFlight map[string]*flight[T]
	isClosed bool
	running  sync.WaitGroup
}

// flight is one load.
type flight[T any] struct {
	waiting int // Callers, under flights.mu.
	cancel  context.CancelCauseFunc
	done    chan struct{}
	outcome outcome[T] // Once done is closed.

	storing   sync.Mutex // Held while the value is stored.
	overtaken bool       // Under storing: the value must not be stored.
}

// outcome is what became of a load.
type outcome[T any] struct {
	value T
	// stored is the entry that the value is in, nil if it has none.
	stored []byte
	err    error
	// panicked is what the loader panicked with, nil if it did not.
	panicked *LoaderPanic
}

// enter gives the load of a key, and whether it was there already; if not, it begins with run in a goroutine of its own.
// The context of run has the values of ctx and ends when all callers have left, or with closing. It returns ErrClosed
// after close.
func (f *flights[T]) enter(ctx, closing context.Context, key string, run func(context.Context, *flight[T])) (current *flight[T], isJoined bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed {
		return nil, false, ErrClosed
	}
	if current, isJoined = f.inFlight[key]; isJoined {
		current.waiting++
		return current, true, nil
	}
	loading, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(closing, func() { cancel(context.Cause(closing)) })
	current = &flight[T]{waiting: 1, cancel: cancel, done: make(chan struct{})}
	if f.inFlight == nil {
		f.inFlight = map[string]*flight[T]{}
	}
	f.inFlight[key] = current
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		defer cancel(nil)
		defer stop()
		// Also when a loader ends its goroutine.
		defer f.land(key, current)
		run(loading, current)
	}()
	return current, false, nil
}

// wait gives what becomes of a load, or the cause why ctx has ended before.
func (f *flights[T]) wait(ctx context.Context, key string, current *flight[T]) (outcome[T], error) {
	select {
	case <-current.done:
		return current.outcome, nil
	case <-ctx.Done():
		f.leave(key, current)
		return outcome[T]{}, context.Cause(ctx)
	}
}

// leave ends a load that nobody waits for any more. Whoever wants the key from now on begins another.
func (f *flights[T]) leave(key string, current *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	current.waiting--
	if current.waiting > 0 {
		return
	}
	current.cancel(context.Canceled)
	f.remove(key, current)
}

func (f *flights[T]) land(key string, current *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(key, current)
	close(current.done)
}

// remove needs the lock.
func (f *flights[T]) remove(key string, current *flight[T]) {
	if f.inFlight[key] == current {
		delete(f.inFlight, key)
	}
}

// overtake sees that a load that is under way for a key stores nothing from now on: what it reads may be older than what
// its caller is about to do. It waits if the load is just storing.
func (f *flights[T]) overtake(key string) {
	f.mu.Lock()
	current := f.inFlight[key]
	delete(f.inFlight, key)
	f.mu.Unlock()
	if current != nil {
		current.storing.Lock()
		current.overtaken = true
		current.storing.Unlock()
	}
}

// close refuses loads from now on, and waits for those under way.
func (f *flights[T]) close() {
	f.mu.Lock()
	f.isClosed = true
	f.mu.Unlock()
	f.running.Wait()
}
