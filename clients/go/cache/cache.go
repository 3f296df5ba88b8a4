package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"snugly.dev/go/envelope"
)

// Cache keeps values of one type. It is for any number of goroutines.
type Cache[T any] struct {
	backend       Backend
	options       Options
	prefix        string
	former        []string // The prefixes of Options.OldVersions.
	codec         coder[T]
	plainJSON     atomic.Bool
	loads         flights[T]
	revalidations revalidations
	counted       counters
	// closing ends with Close, and with it whatever still loads.
	closing context.Context
	close   context.CancelCauseFunc
}

// New makes a cache of a type on a backend. It returns an *OptionError for an option that cannot be, and a *TypeError if
// the codec writes MessagePack and the type is not ready for it; Auto writes MessagePack if the type has generated code.
// Encode, Decode and what tells of the cache need no backend, which may be nil for them.
func New[T any](backend Backend, options Options) (*Cache[T], error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	codec, err := newCoder[T](options)
	if err != nil {
		return nil, err
	}
	c := &Cache[T]{backend: backend, options: options, codec: codec}
	c.prefix = keyPrefix(options.Version, options.Prefix)
	for _, version := range options.OldVersions {
		c.former = append(c.former, keyPrefix(version, options.Prefix))
	}
	c.plainJSON.Store(options.PlainJSON)
	c.revalidations.room = make(chan struct{}, options.MaxRevalidations)
	c.closing, c.close = context.WithCancelCause(context.Background())
	return c, nil
}

func keyPrefix(version int, prefix string) string {
	if version == 0 {
		return prefix
	}
	return "v" + strconv.Itoa(version) + ":" + prefix
}

// Key gives the key of an entry as the server knows it: v2:user:123 for the key 123 with the version 2 and the prefix
// user: of Options.
func (c *Cache[T]) Key(key string) string { return c.prefix + key }

// WritePlainJSON makes new entries plain JSON, whatever the codec, for as long as people look at them with other tools.
// Entries of all codecs are still read.
func (c *Cache[T]) WritePlainJSON(plain bool) { c.plainJSON.Store(plain) }

// Close ends the loads that still run, whose callers get ErrClosed, and waits for them and for what is being stored. Later
// loads get ErrClosed as well. The backend stays open.
func (c *Cache[T]) Close() {
	c.close(ErrClosed)
	c.loads.close()
}

// Get returns the value of a key, fresh or stale. It returns ErrMiss if there is none, ErrNotFound if the cache remembers
// that it does not exist, and errors of the backend as they are. An entry that cannot be read is what
// Options.OnUndecodable says.
func (c *Cache[T]) Get(ctx context.Context, key string) (value T, err error) {
	found, err := foundOne(c.backend.Get(ctx, c.Key(key)))
	if err != nil {
		return value, err
	}
	return c.read(ctx, key, found, c.budget())
}

// budget is the memory for what comes with one reply.
func (c *Cache[T]) budget() *envelope.Budget {
	budget := c.options.budget()
	return &budget
}

// read counts what was found at a key and gives its value.
func (c *Cache[T]) read(ctx context.Context, key string, found entry, of *envelope.Budget) (value T, err error) {
	if found.stored == nil {
		c.counted.misses.Add(1)
		return value, ErrMiss
	}
	if isNotFound(found.stored) {
		c.counted.negativeHits.Add(1)
		return value, ErrNotFound
	}
	value, err = c.codec.decodeFound(ctx, c.Key(key), found, of)
	if err != nil {
		c.counted.decodeFailures.Add(1)
		if c.options.OnUndecodable == envelope.Miss {
			c.options.OnError(key, err)
			c.counted.misses.Add(1)
			err = ErrMiss
		}
		return value, err
	}
	c.counted.hits.Add(1)
	return value, nil
}

// GetMany returns the values of those keys that have one, in one round trip to each server. Entries that cannot be read
// are left out, and so are those beyond Options.MaxReplyBytes; with envelope.Raise the error then joins a *DecodeError for
// each. If the backend fails, the map is nil.
func (c *Cache[T]) GetMany(ctx context.Context, keys ...string) (map[string]T, error) {
	prefixed := c.withPrefix(keys)
	stored, err := c.backend.GetMany(ctx, prefixed)
	found, err := foundMany(prefixed, stored, err)
	if err != nil {
		return nil, err
	}
	values := make(map[string]T, len(keys))
	budget := c.budget()
	var unreadable []error
	for at, key := range keys {
		value, err := c.read(ctx, key, found[at], budget)
		if err == nil {
			values[key] = value
		} else if failure := (*DecodeError)(nil); errors.As(err, &failure) {
			unreadable = append(unreadable, err)
		}
	}
	return values, errors.Join(unreadable...)
}

// Set stores a value for the cache's TTL. It returns an *EncodeError for one that has no form in the codec, and errors of
// the backend as they are.
func (c *Cache[T]) Set(ctx context.Context, key string, value T) error {
	return c.SetFor(ctx, key, value, c.options.TTL)
}

// SetFor stores a value that is fresh for a time of its own, with the jitter of all, or with NoExpiry. It returns an
// *OptionError for another time under a millisecond, and the errors of Set.
func (c *Cache[T]) SetFor(ctx context.Context, key string, value T, ttl time.Duration) error {
	if !isTTL(ttl) {
		return &OptionError{Option: "TTL", Value: ttl, Allowed: ttlAllowed}
	}
	at := c.Key(key)
	stored, err := c.encode(at, &value)
	if err != nil {
		return err
	}
	if err := c.loads.overtake(ctx, key); err != nil {
		return err
	}
	if err := c.backend.Set(ctx, at, stored, c.lifetime(ttl, c.options.Stale)); err != nil {
		return err
	}
	c.counted.sets.Add(1)
	return c.forgetFormer(ctx, key)
}

// SetMany stores values by their keys for the cache's TTL, in one round trip to each server. If one of them has no form
// in the codec, it returns an *EncodeError and stores none.
func (c *Cache[T]) SetMany(ctx context.Context, values map[string]T) error {
	keys := make([]string, 0, len(values))
	stored := make([][]byte, 0, len(values))
	ttls := make([]time.Duration, 0, len(values))
	for key, value := range values {
		encoded, err := c.encode(c.Key(key), &value)
		if err != nil {
			return err
		}
		keys = append(keys, key)
		stored = append(stored, encoded)
		ttls = append(ttls, c.lifetime(c.options.TTL, c.options.Stale))
	}
	if len(keys) == 0 {
		return nil
	}
	if err := c.loads.overtake(ctx, keys...); err != nil {
		return err
	}
	if err := c.backend.SetMany(ctx, c.withPrefix(keys), stored, ttls); err != nil {
		return err
	}
	c.counted.sets.Add(uint64(len(keys)))
	return c.forgetFormer(ctx, keys...)
}

// Delete removes entries, and what the cache remembers of things that do not exist. A load of this cache that is under
// way for one of the keys will not store what it has read before; one that is just storing is waited for.
func (c *Cache[T]) Delete(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	if err := c.loads.overtake(ctx, keys...); err != nil {
		return err
	}
	return c.backend.Delete(ctx, append(c.withPrefix(keys), c.inFormer(keys)...))
}

// forgetFormer removes the entries that processes with an old version have of keys.
func (c *Cache[T]) forgetFormer(ctx context.Context, keys ...string) error {
	if len(c.former) == 0 {
		return nil
	}
	return c.backend.Delete(ctx, c.inFormer(keys))
}

func (c *Cache[T]) inFormer(keys []string) []string {
	former := make([]string, 0, len(c.former)*len(keys))
	for _, prefix := range c.former {
		for _, key := range keys {
			former = append(former, prefix+key)
		}
	}
	return former
}

func (c *Cache[T]) withPrefix(keys []string) []string {
	prefixed := make([]string, len(keys))
	for at, key := range keys {
		prefixed[at] = c.Key(key)
	}
	return prefixed
}

func (c *Cache[T]) encode(at string, value *T) ([]byte, error) {
	stored, err := c.codec.encode(at, value, c.plainJSON.Load(), c.counted.readsForEachWrite())
	if err != nil {
		c.counted.encodeFailures.Add(1)
	}
	return stored, err
}

// lifetime is the time for which the server is to keep an entry.
func (c *Cache[T]) lifetime(ttl, stale time.Duration) time.Duration {
	if ttl == NoExpiry {
		return NoExpiry
	}
	shorter := time.Duration(rand.Float64() * c.options.Jitter * float64(ttl))
	return max(ttl-shorter, time.Millisecond) + stale
}

// Encode gives what Set would store for a value now: for tools that measure or move entries. It returns an *EncodeError for
// a value that has no form in the codec.
func (c *Cache[T]) Encode(key string, value T) ([]byte, error) { return c.encode(c.Key(key), &value) }

// Decode gives the value of what Set of any cache of the type has stored. It returns a *DecodeError for what cannot be
// read, and ErrNotFound for what says that something does not exist.
func (c *Cache[T]) Decode(ctx context.Context, key string, stored []byte) (value T, err error) {
	if isNotFound(stored) {
		return value, ErrNotFound
	}
	return c.codec.decode(ctx, c.Key(key), stored)
}

// Statistics are the counts since the cache was made. That of the envelopes is Options.Envelope's.
func (c *Cache[T]) Statistics() Statistics { return c.counted.snapshot() }

// Codec tells how new entries are written now: what Auto has chosen, or JSON while WritePlainJSON is on.
func (c *Cache[T]) Codec() Codec {
	if c.plainJSON.Load() {
		return JSON
	}
	return c.codec.now()
}

// newCoder makes the codec of a cache, if the type is ready for it.
func newCoder[T any](options Options) (coder[T], error) {
	form := newForm[T]()
	kind := reflect.TypeFor[T]()
	if codecs[options.Codec].isMsgp && !form.hasMsgp() {
		return coder[T]{}, &TypeError{kind.String(), []string{withoutCode(kind)}}
	}
	if form.hasMsgp() && (options.Codec == Auto || codecs[options.Codec].isMsgp) {
		if err := checkFields(kind); err != nil {
			return coder[T]{}, err
		}
	}
	made := coder[T]{form: form, envelope: options.Envelope, codec: options.Codec}
	if options.Codec == Auto {
		made.choice, made.trials = newChoice(options.Goal, form.hasMsgp()), options.Envelope.ForTrials()
	}
	return made, nil
}

// withoutCode says what is wrong with a type that has no generated code, and what to do.
func withoutCode(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		if kind.Name() == "" {
			return fmt.Sprintf("it has no name that code could be generated for: give it one, as in type Values %v, run go generate and make a cache of that, or choose another codec", kind)
		}
	}
	return "it has no generated code: run github.com/tinylib/msgp on it, or choose another codec"
}

func isNotFound(stored []byte) bool { return len(stored) == 1 && stored[0] == notFound }
