package cache

import (
	"context"
	"time"
)

// Backend keeps entries: a client of Redis, Valkey or snugly. goredis.Backend and valkeygo.Backend make one.
//
// It gets the full keys of the server. A time to live of [NoExpiry] is for a key that does not expire; the others are
// positive and may be rounded to milliseconds. What it is given and what it returns is never changed by either side. A
// client that restores values itself returns as it is stored what it cannot restore, so that the cache may; but for what is
// too large, whose *envelope.UndecodableError is its error.
type Backend interface {
	// Get returns what is stored under a key, nil if nothing is.
	Get(ctx context.Context, key string) (stored []byte, err error)
	// GetWithTTL also returns how long it is still to live.
	GetWithTTL(ctx context.Context, key string) (stored []byte, ttl time.Duration, err error)
	// GetMany returns what is stored under each key, in the order of the keys, in one round trip to each server. Of entries
	// that are too large it returns the errors, joined, beside the others.
	GetMany(ctx context.Context, keys []string) (stored [][]byte, err error)
	// Set stores a value.
	Set(ctx context.Context, key string, value []byte, ttl time.Duration) error
	// SetMany stores each value under the key of its position, in one round trip to each server.
	SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error
	// Delete removes keys, in one round trip to each server. Those that are not there are none of its business.
	Delete(ctx context.Context, keys []string) error
}

// NoExpiry is the time to live of entries that stay until they are deleted or evicted.
const NoExpiry time.Duration = -1
