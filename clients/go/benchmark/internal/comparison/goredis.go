//go:build unix

package comparison

import (
	"context"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
)

// poolSize is how many connections a client of go-redis may have: one for each goroutine, so that none waits for another.
const poolSize = 64

// GoRedis has a client of go-redis without the hook, and one with it for each backend.
func GoRedis(settings Settings) ([]Way, error) {
	ways := []Way{{Name{"go-redis", Bare}, goRedisClient{newGoRedis(settings.Address)}}}
	for _, row := range []struct {
		name    string
		backend envelope.Backend
	}{
		{"off", envelope.None},
		{"lz4", envelope.LZ4},
		{"zstd", envelope.Zstd},
	} {
		client := newGoRedis(settings.Address)
		if _, err := goredis.Compress(client, compression.Options{Backend: row.backend}); err != nil {
			return nil, err
		}
		ways = append(ways, Way{Name{"go-redis", row.name}, goRedisClient{client}})
	}
	return ways, nil
}

func newGoRedis(address string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, PoolSize: poolSize})
}

// goRedisClient is a Client of go-redis.
type goRedisClient struct{ client *redis.Client }

func (c goRedisClient) Set(ctx context.Context, key, value string) error {
	return c.client.Set(ctx, key, value, 0).Err()
}

func (c goRedisClient) Get(ctx context.Context, key string) (string, error) {
	return c.client.Get(ctx, key).Result()
}

func (c goRedisClient) Close() { _ = c.client.Close() }
