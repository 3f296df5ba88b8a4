package cache

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

// deployment is a backend of the cache and a client that sees what is stored.
type deployment struct {
	Backend
	raw redis.UniversalClient
}

func goRedisTo(t testing.TB, address string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func clusterTo(t testing.TB, addresses []string) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func valkeyGoTo(t testing.TB, addresses ...string) valkey.Client {
	t.Helper()
	client, err := valkey.NewClient(valkey.ClientOption{InitAddress: addresses, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// onValkey is a deployment for what does not depend on the client.
func onValkey(t testing.TB) deployment {
	t.Helper()
	client := goRedisTo(t, servers.Valkey(t))
	return deployment{goredis.Backend(client), client}
}

// onEach runs a test with each client, on each kind of server.
func onEach(t *testing.T, test func(*testing.T, deployment)) {
	both := func(start func(t testing.TB) string) func(*testing.T) {
		return func(t *testing.T) {
			address := start(t)
			raw := goRedisTo(t, address)
			t.Run("go-redis", func(t *testing.T) { test(t, deployment{goredis.Backend(raw), raw}) })
			raw.FlushAll(context.Background())
			t.Run("valkey-go", func(t *testing.T) { test(t, deployment{valkeygo.Backend(valkeyGoTo(t, address)), raw}) })
		}
	}
	t.Run("valkey", both(func(t testing.TB) string { return servers.Valkey(t) }))
	t.Run("snugly", both(func(t testing.TB) string { return servers.Snugly(t) }))
	t.Run("cluster", func(t *testing.T) {
		servers.Slow(t, servers.ClusterTakesLong)
		addresses := servers.NewCluster(t, 3).Addresses
		raw := clusterTo(t, addresses)
		t.Run("go-redis", func(t *testing.T) { test(t, deployment{goredis.Backend(raw), raw}) })
		err := raw.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.FlushAll(ctx).Err() })
		check(t, err)
		t.Run("valkey-go", func(t *testing.T) { test(t, deployment{valkeygo.Backend(valkeyGoTo(t, addresses...)), raw}) })
	})
}

func newCache[T any](t testing.TB, backend Backend, options Options) *Cache[T] {
	t.Helper()
	if options.TTL == 0 {
		options.TTL = time.Minute
	}
	if options.BackendTimeout == 0 {
		// A busy machine takes longer than the default.
		options.BackendTimeout = time.Minute
	}
	made, err := New[T](backend, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
