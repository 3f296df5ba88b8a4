package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Loader gets a value from where it comes from. For something that does not exist it returns ErrNotFound, or an error
// that wraps it. Its context has the values of the context of the caller who began the load, and ends with
// Options.LoadTimeout, with Close, and when all who wait for the value have left.
type Loader[T any] func(ctx context.Context) (T, error)

// LoaderPanic is what GetOrLoad panics with if the loader did: the loader runs in a goroutine of its own, where nobody
// could recover. In the background, or when all who waited have left, it is an error for Options.OnError.
type LoaderPanic struct {
	// Value is that of the loader's panic.
	Value any
	// Stack is that of the loader then.
	Stack []byte
}

// Error says what the loader panicked with, and where.
func (p *LoaderPanic) Error() string {
	return fmt.Sprintf("the loader panicked: %v\n%s", p.Value, p.Stack)
}

var errLoaderExited = errors.New("the loader has ended its goroutine")

// GetOrLoad returns the value of a key; if there is none, the one that load returns, which is stored.
//
// Of those who miss the same key at the same time in this cache, one calls its loader, and the others wait for it and get
// a copy of their own; what has no form in the codec cannot be copied, so each loads it. A stale entry is returned at
// once, and loaded anew in the background. What load finds not to exist is ErrNotFound here, for the next callers too if
// Options.NegativeTTL is set.
//
// The cache being broken is no reason to fail: if the backend fails, or does not answer for Options.BackendTimeout, or the
// entry cannot be read, the value is loaded. It is returned at once, and stored in the background; if it cannot be,
// Options.OnError gets the error, as it gets the others. The errors of load are returned as they are, but that a deadline
// which is over was Options.LoadTimeout is said before. If ctx ends first, its cause is returned, and the load goes on for
// the others who wait.
func (c *Cache[T]) GetOrLoad(ctx context.Context, key string, load Loader[T]) (value T, err error) {
	found, err := c.look(ctx, c.Key(key))
	isEnough := func(found entry) bool { return found.stored != nil }
	switch {
	case err == nil:
		value, err = c.read(ctx, key, found, c.budget())
		if err == nil || errors.Is(err, ErrNotFound) {
			if found.isStale {
				c.counted.staleHits.Add(1)
				c.revalidate(ctx, key, load)
			}
			return value, err
		}
		if !errors.Is(err, ErrMiss) {
			c.options.OnError(key, err)
		}
	case ctx.Err() != nil:
		return value, context.Cause(ctx)
	default:
		isEnough = nil
		c.backendFailed(key, err)
	}
	current, isJoined, err := c.loads.enter(ctx, c.closing, key, func(ctx context.Context, own *flight[T]) {
		c.run(ctx, key, load, own, isEnough)
		if panicked := own.outcome.panicked; panicked != nil && !c.loads.settle(key, own) {
			c.options.OnError(key, panicked)
		}
	})
	if err != nil {
		return value, err
	}
	loaded, err := c.loads.wait(ctx, key, current)
	switch {
	case err != nil:
		return value, err
	case loaded.panicked != nil:
		panic(loaded.panicked)
	case isJoined:
		c.counted.loadsJoined.Add(1)
		return c.copied(ctx, c.Key(key), loaded, load)
	}
	return loaded.value, loaded.err
}

// copied gives a copy of what another has loaded: a value may have pointers, and others may change what these point to.
// What has no form in the codec cannot be copied, and is loaded once more.
func (c *Cache[T]) copied(ctx context.Context, at string, loaded outcome[T], load Loader[T]) (value T, err error) {
	switch {
	case loaded.err != nil:
		return value, loaded.err
	case loaded.stored != nil:
		return c.codec.decodeCopy(ctx, at, loaded.stored)
	}
	own := c.call(ctx, load)
	if own.panicked != nil {
		panic(own.panicked)
	}
	return own.value, own.err
}

// look asks the backend for an entry, and for its age where that matters.
func (c *Cache[T]) look(ctx context.Context, at string) (found entry, err error) {
	err = c.inTime(ctx, func(ctx context.Context) error {
		if c.options.Stale == 0 {
			found, err = foundOne(c.backend.Get(ctx, at))
			return err
		}
		stored, ttl, failure := c.backend.GetWithTTL(ctx, at)
		found, err = foundOne(stored, failure)
		found.isStale = ttl != NoExpiry && ttl <= c.options.Stale && found.isValue()
		return err
	})
	return found, err
}

// inTime asks something of the backend that is to take no longer than Options.BackendTimeout.
func (c *Cache[T]) inTime(ctx context.Context, ask func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.options.BackendTimeout)
	defer cancel()
	started := time.Now()
	err := ask(limited)
	// Clients look at the deadline themselves and may be a little early; but they have timeouts of their own, too.
	isAlmostOver := time.Since(started) > c.options.BackendTimeout-c.options.BackendTimeout/10
	isLate := limited.Err() != nil || errors.Is(err, context.DeadlineExceeded) && isAlmostOver
	if err != nil && isLate && ctx.Err() == nil {
		return fmt.Errorf("Options.BackendTimeout of %v is over: %w", c.options.BackendTimeout, err)
	}
	return err
}

// run is a load: it leaves the outcome in own. Unless isEnough is nil, it looks once more at what is stored, as the load
// before this one or another process may have stored it in the meantime, and takes an entry that is enough.
func (c *Cache[T]) run(ctx context.Context, key string, load Loader[T], own *flight[T], isEnough func(entry) bool) {
	own.outcome.err = errLoaderExited
	var found entry
	if isEnough != nil {
		var err error
		if found, err = c.look(ctx, c.Key(key)); err != nil && ctx.Err() == nil {
			c.backendFailed(key, err)
		}
		if isEnough(found) && c.take(ctx, key, own, found) {
			return
		}
	}
	if ctx.Err() != nil {
		own.outcome.err = context.Cause(ctx)
		return
	}
	own.outcome = c.call(ctx, load)
	switch loaded := &own.outcome; {
	case errors.Is(loaded.err, ErrNotFound):
		c.storeNotFound(ctx, key, own, found.stored != nil)
	case loaded.err == nil && loaded.panicked == nil:
		c.storeLoaded(ctx, key, own)
	}
}

// take makes what is stored the outcome, if it can be read.
func (c *Cache[T]) take(ctx context.Context, key string, own *flight[T], found entry) bool {
	if isNotFound(found.stored) {
		own.outcome = outcome[T]{err: ErrNotFound}
		return true
	}
	value, err := c.codec.decodeFound(ctx, c.Key(key), found.own(), c.budget())
	if err == nil {
		own.outcome = outcome[T]{value: value, stored: found.stored}
	}
	return err == nil
}

// call calls a loader.
func (c *Cache[T]) call(ctx context.Context, load Loader[T]) (loaded outcome[T]) {
	c.counted.loads.Add(1)
	over := func(err error) error {
		return fmt.Errorf("Options.LoadTimeout of %v is over: %w", c.options.LoadTimeout, err)
	}
	tooLate := over(context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.LoadTimeout, tooLate)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()
	defer func() {
		if value := recover(); value != nil {
			loaded.panicked = &LoaderPanic{value, debug.Stack()}
		}
		if loaded.panicked != nil || loaded.err != nil && !errors.Is(loaded.err, ErrNotFound) {
			c.counted.loadFailures.Add(1)
		}
	}()
	loaded.err = errLoaderExited
	loaded.value, loaded.err = load(ctx)
	switch {
	case loaded.err == nil:
	case c.closing.Err() != nil:
		loaded.err = fmt.Errorf("%w: %w", ErrClosed, loaded.err)
	case errors.Is(loaded.err, context.DeadlineExceeded) && context.Cause(ctx) == tooLate && !errors.Is(loaded.err, tooLate):
		loaded.err = over(loaded.err)
	}
	return loaded
}

func (c *Cache[T]) storeLoaded(ctx context.Context, key string, own *flight[T]) {
	stored, err := c.encode(c.Key(key), &own.outcome.value)
	if err != nil {
		c.options.OnError(key, err)
		return
	}
	own.outcome.stored = stored
	c.store(ctx, key, own, func(ctx context.Context, at string) error {
		return c.backend.Set(ctx, at, stored, c.lifetime(c.options.TTL, c.options.Stale))
	})
}

// storeNotFound remembers that something does not exist, or at least removes an entry that says otherwise.
func (c *Cache[T]) storeNotFound(ctx context.Context, key string, own *flight[T], hasEntry bool) {
	if c.options.NegativeTTL == 0 && !hasEntry {
		return
	}
	c.store(ctx, key, own, func(ctx context.Context, at string) error {
		if c.options.NegativeTTL == 0 {
			return c.backend.Delete(ctx, []string{at})
		}
		return c.backend.Set(ctx, at, []byte{notFound}, c.lifetime(c.options.NegativeTTL, 0))
	})
}

// store hands the outcome out and does so, unless a Set or Delete of the key has overtaken the load or nobody waits for it
// any more. What is loaded is stored even if the cache is closed meanwhile.
func (c *Cache[T]) store(ctx context.Context, key string, own *flight[T], do func(ctx context.Context, at string) error) {
	mayStore, isOvertaken := c.loads.land(own)
	if isOvertaken {
		c.counted.loadsOvertaken.Add(1)
	}
	if !mayStore {
		return
	}
	err := c.inTime(context.WithoutCancel(ctx), func(ctx context.Context) error { return do(ctx, c.Key(key)) })
	// Before OnError, which may delete the entry.
	c.loads.settle(key, own)
	if err != nil {
		c.backendFailed(key, err)
	}
}

func (c *Cache[T]) backendFailed(key string, err error) {
	c.counted.backendFailures.Add(1)
	c.options.OnError(key, err)
}

// revalidate loads a stale entry in the background, unless that is done already or has just failed.
func (c *Cache[T]) revalidate(ctx context.Context, key string, load Loader[T]) {
	isMine, isFull := c.revalidations.begin(key)
	if isFull {
		c.counted.skipped.Add(1)
	}
	if !isMine {
		return
	}
	current, isJoined, err := c.loads.enter(ctx, c.closing, key, func(ctx context.Context, own *flight[T]) {
		rest := c.options.RetryAfter
		defer func() { c.revalidations.end(key, rest) }()
		c.run(ctx, key, load, own, func(found entry) bool { return found.stored != nil && !found.isStale })
		switch loaded := own.outcome; {
		case loaded.panicked != nil:
			c.options.OnError(key, loaded.panicked)
		case loaded.err != nil && !errors.Is(loaded.err, ErrNotFound):
			c.options.OnError(key, loaded.err)
		default:
			rest = 0
		}
	})
	if isJoined {
		// Somebody else loads it already.
		c.loads.leave(key, current)
	}
	if isJoined || err != nil {
		c.revalidations.end(key, 0)
	}
}
