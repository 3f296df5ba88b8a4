package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

func TestAClientOfASentinelIsCompressed(t *testing.T) {
	primary := servers.Valkey(t)
	sentinel := servers.Sentinel(t, primary)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "primary", SentinelAddrs: []string{sentinel}})
	compressor, err := goredis.Compress(client, compression.Options{})
	ok(t, err)
	t.Cleanup(func() { client.Close(); compressor.Close() })
	ok(t, client.Set(ctx, "key", page(1), time.Minute).Err())
	same(t, client.Get(ctx, "key").Val(), page(1))
	expectOnce(t, storedAt(t, primary, "key"), page(1))
}

func TestWhatIsSentAgainAfterAFailoverIsEncodedOnce(t *testing.T) {
	servers.Slow(t, servers.FailoverTakesLong)
	for name, send := range map[string]func(t *testing.T, client *redis.Client, key string){
		"a single command": func(t *testing.T, client *redis.Client, key string) {
			ok(t, client.Set(ctx, key, page(1), 0).Err())
		},
		"a pipeline": func(t *testing.T, client *redis.Client, key string) { exchange(t, client.Pipelined, key) },
	} {
		t.Run(name, func(t *testing.T) {
			primary, replica, sentinel := servers.Watched(t)
			dial := losing{key: "lost", meanwhile: func() { servers.FailOver(t, sentinel, replica) }}
			client := redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: "primary", SentinelAddrs: []string{sentinel}, Dialer: dial.dial,
			})
			compressor, err := goredis.Compress(client, compression.Options{ExistingEnvelopes: envelope.Wrap})
			ok(t, err)
			t.Cleanup(func() { client.Close(); compressor.Close() })
			ok(t, client.Set(ctx, "before", page(2), 0).Err())
			expectOnce(t, storedAt(t, primary, "before"), page(2))
			send(t, client, dial.key)
			same(t, dial.lost.Load(), int64(1))
			expectOnce(t, storedAt(t, replica, dial.key), page(1))

			ok(t, client.Set(ctx, "after", page(3), 0).Err())
			same(t, client.Get(ctx, "after").Val(), page(3))
			expectOnce(t, storedAt(t, replica, "after"), page(3))
			expectRefused(t, client.Append(ctx, "after", "more").Err())
		})
	}
}
