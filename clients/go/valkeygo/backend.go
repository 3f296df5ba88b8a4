package valkeygo

import (
	"context"
	"errors"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/envelope"
)

// CacheBackend keeps the entries of package cache with valkey-go.
type CacheBackend struct{ client valkey.Client }

// Backend makes a client, of one server or a cluster, the backend of a cache. It may be one that compresses or not: its
// entries are compressed once. What a client that compresses cannot restore is given as it is stored, for the cache to say
// so, unless it is too large.
func Backend(client valkey.Client) CacheBackend { return CacheBackend{client} }

// Get returns what is stored under a key, nil if nothing is.
func (b CacheBackend) Get(ctx context.Context, key string) ([]byte, error) {
	return stored(b.client.Do(ctx, b.client.B().Get().Key(key).Build()))
}

// GetWithTTL also returns how long it is still to live, -1 for ever.
func (b CacheBackend) GetWithTTL(ctx context.Context, key string) ([]byte, time.Duration, error) {
	replies := b.client.DoMulti(ctx, b.client.B().Get().Key(key).Build(), b.client.B().Pttl().Key(key).Build())
	value, err := stored(replies[0])
	if err != nil {
		return nil, 0, err
	}
	ttl, err := replies[1].AsInt64()
	if ttl < 0 {
		return value, time.Duration(ttl), err
	}
	return value, time.Duration(ttl) * time.Millisecond, err
}

// GetMany returns what is stored under each key, in the order of the keys, and the errors of what is too large, joined.
func (b CacheBackend) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	commands := make(valkey.Commands, len(keys))
	for at, key := range keys {
		commands[at] = b.client.B().Get().Key(key).Build()
	}
	values := make([][]byte, len(keys))
	var tooLarge []error
	for at, reply := range b.client.DoMulti(ctx, commands...) {
		var err error
		values[at], err = stored(reply)
		undecodable := (*envelope.UndecodableError)(nil)
		switch {
		case errors.As(err, &undecodable):
			tooLarge = append(tooLarge, err)
		case err != nil:
			return nil, err
		}
	}
	return values, errors.Join(tooLarge...)
}

// Set stores a value for a time, -1 for ever.
func (b CacheBackend) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return b.client.Do(ctx, b.set(key, value, ttl)).Error()
}

// SetMany stores each value under the key of its position.
func (b CacheBackend) SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
	commands := make(valkey.Commands, len(keys))
	for at, key := range keys {
		commands[at] = b.set(key, values[at], ttls[at])
	}
	return firstError(b.client.DoMulti(ctx, commands...))
}

// Delete removes keys.
func (b CacheBackend) Delete(ctx context.Context, keys []string) error {
	commands := make(valkey.Commands, len(keys))
	for at, key := range keys {
		commands[at] = b.client.B().Del().Key(key).Build()
	}
	return firstError(b.client.DoMulti(ctx, commands...))
}

func (b CacheBackend) set(key string, value []byte, ttl time.Duration) valkey.Completed {
	set := b.client.B().Set().Key(key).Value(valkey.BinaryString(value))
	if ttl < 0 {
		return set.Build()
	}
	return set.Px(ttl).Build()
}

func stored(reply valkey.ValkeyResult) ([]byte, error) {
	value, err := reply.AsBytes()
	undecodable := (*envelope.UndecodableError)(nil)
	switch {
	case valkey.IsValkeyNil(err):
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

func firstError(replies []valkey.ValkeyResult) error {
	for _, reply := range replies {
		if err := reply.Error(); err != nil {
			return err
		}
	}
	return nil
}
