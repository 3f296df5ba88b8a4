package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/internal/servers"
)

// release deletes a lock if it is still the caller's.
const release = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

func TestValuesOfExcludedKeysAreSentAsTheyAre(t *testing.T) {
	options := everything
	options.Exclude = []string{"lock:*", "h?sh:[ab]"}
	eachProtocol(t, servers.Valkey(t), options, func(t *testing.T, made opened) {
		client, plain := made.client, made.plain
		ok(t, client.Set(ctx, "lock:set", page(1), time.Minute).Err())
		ok(t, client.MSet(ctx, "lock:mset", page(2), "user:mset", page(3)).Err())
		_, err := client.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
			pipeline.Set(ctx, "lock:piped", page(4), 0)
			pipeline.Set(ctx, "user:piped", page(5), 0)
			return nil
		})
		ok(t, err)
		for key, number := range map[string]int{"lock:set": 1, "lock:mset": 2, "lock:piped": 4} {
			same(t, plain.Get(ctx, key).Val(), page(number))
			same(t, client.Get(ctx, key).Val(), page(number))
		}
		expectStored(t, plain, "user:mset", page(3))
		expectStored(t, plain, "user:piped", page(5))
		// It is the key of the hash that matters, not the field.
		ok(t, client.HSet(ctx, "hash:a", "field", page(6)).Err())
		ok(t, client.HSet(ctx, "hash:c", "lock:1", page(7)).Err())
		same(t, plain.HGet(ctx, "hash:a", "field").Val(), page(6))
		expectOnce(t, plain.HGet(ctx, "hash:c", "lock:1").Val(), page(7))
	})
}

func TestAScriptComparesALockWhoseKeyIsExcluded(t *testing.T) {
	options := everything
	options.Exclude = []string{"lock:*"}
	made := open(t, servers.Valkey(t), options)
	for key, released := range map[string]int64{"lock:1": 1, "other:1": 0} {
		ok(t, made.client.SetNX(ctx, key, page(1), time.Minute).Err())
		deleted, err := made.client.Eval(ctx, release, []string{key}, page(1)).Int64()
		same(t, good(t, deleted, err), released)
	}
}

func TestWhoBeginsToExcludeKeysStillReadsWhatWasWrittenBefore(t *testing.T) {
	before := open(t, servers.Valkey(t), everything)
	ok(t, before.client.Set(ctx, "lock:1", page(1), 0).Err())
	options := everything
	options.Exclude = []string{"*"}
	after := open(t, before.plain.Options().Addr, options)
	same(t, after.client.Get(ctx, "lock:1").Val(), page(1))
	// What is an envelope already stays one.
	stored := after.plain.Get(ctx, "lock:1").Val()
	ok(t, after.client.Set(ctx, "lock:2", stored, 0).Err())
	same(t, after.plain.Get(ctx, "lock:2").Val(), stored)
}
