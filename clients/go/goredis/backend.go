package goredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/envelope"
)

// CacheBackend keeps the entries of package cache with go-redis.
type CacheBackend struct{ client redis.UniversalClient }

// Backend makes a client of one server, a cluster or a ring, made by a sentinel or not, the backend of a cache. It does
// not need the hook; with it, too, entries are compressed once. What the hook cannot restore is given as it is stored, for
// the cache to say so, unless it is too large.
func Backend(client redis.UniversalClient) CacheBackend { return CacheBackend{client} }

// Get returns what is stored under a key, nil if nothing is.
func (b CacheBackend) Get(ctx context.Context, key string) ([]byte, error) {
	return stored(b.client.Get(ctx, key))
}

// GetWithTTL also returns how long it is still to live, -1 for ever.
func (b CacheBackend) GetWithTTL(ctx context.Context, key string) ([]byte, time.Duration, error) {
	var get *redis.StringCmd
	var pttl *redis.DurationCmd
	err := b.pipelined(ctx, func(pipeline redis.Pipeliner) {
		get, pttl = pipeline.Get(ctx, key), pipeline.PTTL(ctx, key)
	})
	if err != nil {
		return nil, 0, err
	}
	value, err := stored(get)
	if err != nil {
		return nil, 0, err
	}
	return value, pttl.Val(), pttl.Err()
}

// GetMany returns what is stored under each key, in the order of the keys, and the errors of what is too large, joined.
func (b CacheBackend) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	gets := make([]*redis.StringCmd, len(keys))
	err := b.pipelined(ctx, func(pipeline redis.Pipeliner) {
		for at, key := range keys {
			gets[at] = pipeline.Get(ctx, key)
		}
	})
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	var tooLarge []error
	for at, get := range gets {
		values[at], err = stored(get)
		switch {
		case err != nil && !isAboutOneEntry(err):
			return nil, err
		case err != nil:
			tooLarge = append(tooLarge, err)
		}
	}
	return values, errors.Join(tooLarge...)
}

// Set stores a value for a time, -1 for ever.
func (b CacheBackend) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return b.client.Set(ctx, key, value, expiry(ttl)).Err()
}

// SetMany stores each value under the key of its position.
func (b CacheBackend) SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
	return b.pipelined(ctx, func(pipeline redis.Pipeliner) {
		for at, key := range keys {
			pipeline.Set(ctx, key, values[at], expiry(ttls[at]))
		}
	})
}

// Delete removes keys.
func (b CacheBackend) Delete(ctx context.Context, keys []string) error {
	return b.pipelined(ctx, func(pipeline redis.Pipeliner) {
		for _, key := range keys {
			pipeline.Del(ctx, key)
		}
	})
}

// pipelined sends commands for one key each, which a cluster and a ring take to where the keys are. That there is no
// such key, or no such value in what is stored, is no error.
func (b CacheBackend) pipelined(ctx context.Context, commands func(redis.Pipeliner)) error {
	sent, err := b.client.Pipelined(ctx, func(pipeline redis.Pipeliner) error {
		commands(pipeline)
		return nil
	})
	if !isAboutOneEntry(err) {
		return err
	}
	for _, command := range sent {
		if err := command.Err(); !isAboutOneEntry(err) {
			return err
		}
	}
	return nil
}

// isAboutOneEntry is for what says nothing of other entries.
func isAboutOneEntry(err error) bool {
	undecodable := (*envelope.UndecodableError)(nil)
	return err == nil || errors.Is(err, redis.Nil) || errors.As(err, &undecodable)
}

func stored(get *redis.StringCmd) ([]byte, error) {
	value, err := get.Bytes()
	undecodable := (*envelope.UndecodableError)(nil)
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case errors.As(err, &undecodable) && undecodable.Kind != envelope.TooLarge:
		return undecodable.Stored, nil
	case err != nil:
		return nil, err
	case value == nil:
		return []byte{}, nil
	}
	return value, nil
}

// expiry is a time to live for go-redis, to which 0 is for ever and -1 something else.
func expiry(ttl time.Duration) time.Duration { return max(ttl, 0) }
