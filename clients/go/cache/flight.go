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

// flight is one load: others wait for it until it is done, and what it has got is stored until it is settled.
type flight[T any] struct {
	cancel  context.CancelCauseFunc
	outcome outcome[T] // Once it is done.
	done    event      // The outcome is known.
	settled event      // Nothing of it is stored any more.

	// Under flights.mu.
	waiting     int // Callers. Those who get the outcome do not leave, so it is 0 for a load that nobody wanted any more.
	isStoring   bool
	isOvertaken bool // The value must not be stored.
}

// event is closed when it has happened.
type event chan struct{}

func (e event) hasHappened() bool {
	select {
	case <-e:
		return true
	default:
		return false
	}
}

// happen needs the lock: what has happened does not happen again.
func (e event) happen() {
	if !e.hasHappened() {
		close(e)
	}
}

// outcome is that of a load.
type outcome[T any] struct {
	value T
	// stored is the entry that the value is in, nil if it has none.
	stored []byte
	err    error
	// panicked is the panic of the loader, nil if there was none.
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
	current = &flight[T]{waiting: 1, cancel: cancel, done: make(event), settled: make(event)}
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
		defer f.settle(key, current)
		run(loading, current)
	}()
	return current, false, nil
}

// wait gives what becomes of a load, or the cause why ctx has ended before.
func (f *flights[T]) wait(ctx context.Context, key string, current *flight[T]) (outcome[T], error) {
	select {
	case <-current.done:
	case <-ctx.Done():
		if f.leave(key, current) {
			return outcome[T]{}, context.Cause(ctx)
		}
	}
	return current.outcome, nil
}

// leave is for a caller who does not wait any more; it returns false if the outcome is there. A load that nobody waits for
// ends, and whoever wants the key from now on begins another.
func (f *flights[T]) leave(key string, current *flight[T]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if current.done.hasHappened() {
		return false
	}
	current.waiting--
	if current.waiting == 0 {
		current.cancel(context.Canceled)
		f.remove(key, current)
	}
	return true
}

// land gives the outcome of a load to all who wait, before it is stored: they need not wait for that. It tells whether it
// is to be stored, which settle ends, or whether that was overtaken.
func (f *flights[T]) land(current *flight[T]) (mayStore, isOvertaken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	current.isStoring = !current.isOvertaken && current.waiting > 0
	current.done.happen()
	return current.isStoring, current.isOvertaken
}

// settle ends a load, and once more does nothing. It tells whether somebody gets the outcome.
func (f *flights[T]) settle(key string, current *flight[T]) (isWanted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	current.done.happen()
	f.remove(key, current)
	current.settled.happen()
	return current.waiting > 0
}

// remove needs the lock.
func (f *flights[T]) remove(key string, current *flight[T]) {
	if f.inFlight[key] == current {
		delete(f.inFlight, key)
	}
}

// overtake sees that loads that are under way for keys store nothing from now on: what they read may be older than what
// the caller is about to do. It waits for those that are just storing; if ctx ends first, it returns the cause.
func (f *flights[T]) overtake(ctx context.Context, keys ...string) error {
	for {
		storing := f.overtakeNow(keys)
		if storing == nil {
			return nil
		}
		select {
		case <-storing.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// overtakeNow returns a load that is just storing; nil if none is, and then those of all keys have been overtaken at the
// same moment. One that is storing stays in flight until it is settled, so that all who overtake it wait.
func (f *flights[T]) overtakeNow(keys []string) (storing *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range keys {
		switch current := f.inFlight[key]; {
		case current == nil:
		case current.isStoring:
			storing = current
		default:
			current.isOvertaken = true
			f.remove(key, current)
		}
	}
	return storing
}

// close refuses loads from now on, and waits for those under way.
func (f *flights[T]) close() {
	f.mu.Lock()
	f.isClosed = true
	f.mu.Unlock()
	f.running.Wait()
}
