package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

// ownerOf is the node whose share has the slot of a key.
func ownerOf(t *testing.T, cluster *servers.Cluster, key string) string {
	t.Helper()
	owner, _ := cluster.Owner(cluster.Slot(t, key))
	return owner
}

// storedAt is what one node holds, read without any client library.
func storedAt(t *testing.T, address, key string) string {
	t.Helper()
	return servers.Ask(t, address, "GET", key)
}

func TestAClusterIsCompressed(t *testing.T) {
	servers.Slow(t, servers.ClusterTakesLong)
	cluster := servers.NewCluster(t, 3)
	open := func(t *testing.T, options compression.Options, use ...func(*redis.ClusterClient)) *redis.ClusterClient {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addresses})
		for _, each := range use {
			each(client)
		}
		compressor, err := goredis.Compress(client, options)
		ok(t, err)
		t.Cleanup(func() { client.Close(); compressor.Close() })
		return client
	}

	t.Run("single commands", func(t *testing.T) {
		client := open(t, compression.Options{})
		for number := range 20 {
			key := fmt.Sprintf("single:%d", number)
			ok(t, client.Set(ctx, key, page(number), 0).Err())
			expectOnce(t, storedAt(t, ownerOf(t, cluster, key), key), page(number))
			got := client.Get(ctx, key)
			same(t, good(t, got.Val(), got.Err()), page(number))
		}
	})

	t.Run("several keys of a slot", func(t *testing.T) {
		client := open(t, compression.Options{})
		keys := []string{}
		for number := range 10 {
			keys = append(keys, fmt.Sprintf("{several}:%d", number))
			ok(t, client.Set(ctx, keys[number], page(number), 0).Err())
		}
		read := client.MGet(ctx, keys...)
		for number, value := range good(t, read.Val(), read.Err()) {
			same(t, value, page(number))
		}
	})

	t.Run("pipelines", func(t *testing.T) {
		client := open(t, compression.Options{})
		var got []*redis.StringCmd
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for number := range 20 {
				pipe.Set(ctx, fmt.Sprintf("pipeline:%d", number), page(number), 0)
				got = append(got, pipe.Get(ctx, fmt.Sprintf("pipeline:%d", number)))
			}
			return nil
		})
		ok(t, err)
		for number, each := range got {
			same(t, good(t, each.Val(), each.Err()), page(number))
		}
	})

	t.Run("transactions", func(t *testing.T) {
		client := open(t, compression.Options{})
		var got *redis.StringCmd
		_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "transaction", page(1), 0)
			got = pipe.Get(ctx, "transaction")
			return nil
		})
		ok(t, err)
		same(t, got.Val(), page(1))
		_, err = client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "transaction", page(2), 0)
			pipe.Append(ctx, "transaction", "more")
			return nil
		})
		expectRefused(t, err)
		same(t, client.Get(ctx, "transaction").Val(), page(1))
	})

	t.Run("callbacks of WATCH", func(t *testing.T) {
		client := open(t, compression.Options{})
		ok(t, client.Set(ctx, "watched", page(1), 0).Err())
		ok(t, client.Watch(ctx, func(tx *redis.Tx) error {
			same(t, tx.Get(ctx, "watched").Val(), page(1))
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Set(ctx, "watched", page(2), 0)
				return nil
			})
			return err
		}, "watched"))
		expectOnce(t, storedAt(t, ownerOf(t, cluster, "watched"), "watched"), page(2))
	})

	t.Run("refused commands", func(t *testing.T) {
		client := open(t, compression.Options{})
		expectRefused(t, client.Append(ctx, "single:1", "more").Err())
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.StrLen(ctx, "single:1")
			return nil
		})
		expectRefused(t, err)
	})

	t.Run("a value that cannot be read, which is asked for once", func(t *testing.T) {
		client := open(t, compression.Options{})
		owner := ownerOf(t, cluster, "damaged")
		servers.Ask(t, owner, "SET", "damaged", damaged)
		servers.Ask(t, owner, "CONFIG", "RESETSTAT")
		var undecodable *envelope.UndecodableError
		if err := client.Get(ctx, "damaged").Err(); !errors.As(err, &undecodable) {
			t.Errorf("got %v", err)
		}
		if counted := servers.Ask(t, owner, "INFO", "commandstats"); !strings.Contains(counted, "cmdstat_get:calls=1,") {
			t.Errorf("counted %q", counted)
		}
		for name, pipelined := range map[string]func(func(redis.Pipeliner) error) ([]redis.Cmder, error){
			"pipeline":    func(fill func(redis.Pipeliner) error) ([]redis.Cmder, error) { return client.Pipelined(ctx, fill) },
			"transaction": func(fill func(redis.Pipeliner) error) ([]redis.Cmder, error) { return client.TxPipelined(ctx, fill) },
		} {
			var got, after *redis.StringCmd
			_, err := pipelined(func(pipe redis.Pipeliner) error {
				got = pipe.Get(ctx, "damaged")
				pipe.Set(ctx, "{damaged}:after", page(1), 0)
				after = pipe.Get(ctx, "{damaged}:after")
				return nil
			})
			if !errors.As(err, &undecodable) || !errors.As(got.Err(), &undecodable) {
				t.Errorf("%s: got %v and %v", name, err, got.Err())
			}
			same(t, good(t, after.Val(), after.Err()), page(1))
		}
	})

	t.Run("nodes that are known already", func(t *testing.T) {
		client := open(t, compression.Options{}, func(client *redis.ClusterClient) {
			ok(t, client.Set(ctx, "known", page(1), 0).Err())
		})
		ok(t, client.Set(ctx, "known", page(2), 0).Err())
		expectOnce(t, storedAt(t, ownerOf(t, cluster, "known"), "known"), page(2))
	})

	t.Run("values that are wrapped are wrapped once", func(t *testing.T) {
		client := open(t, compression.Options{ExistingEnvelopes: envelope.Wrap})
		inner := string(encoded(t, page(1)))
		ok(t, client.Set(ctx, "wrapped", inner, 0).Err())
		same(t, client.Get(ctx, "wrapped").Val(), inner)
	})
}

func encoded(t *testing.T, value string) []byte {
	codec, err := envelope.New(envelope.Options{})
	return good(t, codec, err).Encode(nil, []byte(value))
}

// expectAnswered fails the test if a node has not answered with an error of this kind.
func expectAnswered(t *testing.T, address, kind string) {
	t.Helper()
	if answered := servers.Ask(t, address, "INFO", "errorstats"); !strings.Contains(answered, "errorstat_"+kind) {
		t.Errorf("no %s was answered, but %q", kind, answered)
	}
}

// exchange writes several values in one batch, each command but the first reading what the one before has written, and
// leaves the first page.
func exchange(t *testing.T, batch func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error), key string) {
	t.Helper()
	var setGet *redis.StatusCmd
	var do *redis.Cmd
	var getSet, got *redis.StringCmd
	_, err := batch(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, key, page(4), 0)
		setGet = pipe.SetArgs(ctx, key, page(3), redis.SetArgs{Get: true})
		do = pipe.Do(ctx, "set", key, page(2), "get")
		getSet = pipe.GetSet(ctx, key, page(1))
		got = pipe.Get(ctx, key)
		return nil
	})
	ok(t, err)
	same(t, []any{setGet.Val(), do.Val(), getSet.Val(), got.Val()}, []any{page(4), page(3), page(2), page(1)})
}

func TestWhatIsSentAgainIsEncodedOnce(t *testing.T) {
	// Wrapping would encode what is encoded already.
	options := compression.Options{ExistingEnvelopes: envelope.Wrap}
	// Each way of sending two values, which are read back.
	ways := map[string]func(t *testing.T, client *redis.ClusterClient, key string){
		"single commands": func(t *testing.T, client *redis.ClusterClient, key string) {
			ok(t, client.Set(ctx, key, page(1), 0).Err())
			same(t, client.Get(ctx, key).Val(), page(1))
		},
		"a pipeline": func(t *testing.T, client *redis.ClusterClient, key string) {
			exchange(t, client.Pipelined, key)
		},
		"a transaction": func(t *testing.T, client *redis.ClusterClient, key string) {
			exchange(t, client.TxPipelined, key)
		},
	}
	cluster := servers.NewCluster(t, 3)
	// knowing is a client that knows which node has which slot, and does not look again until it is told.
	knowing := func(t *testing.T, key string) *redis.ClusterClient {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addresses})
		compressor, err := goredis.Compress(client, options)
		ok(t, err)
		t.Cleanup(func() { client.Close(); compressor.Close() })
		ok(t, client.Get(ctx, key).Err(), redis.Nil)
		return client
	}
	for name, send := range ways {
		t.Run("after MOVED, "+name, func(t *testing.T) {
			key := "moved:" + name
			client := knowing(t, key)
			slot := cluster.Slot(t, key)
			owner, importing := cluster.Owner(slot)
			cluster.Give(t, slot, key, owner, importing)
			servers.Ask(t, owner, "CONFIG", "RESETSTAT")
			send(t, client, key)
			expectAnswered(t, owner, "MOVED")
			expectOnce(t, storedAt(t, importing, key), page(1))
		})
		t.Run("after ASK, "+name, func(t *testing.T) {
			key := "asked:" + name
			client := knowing(t, key)
			slot := cluster.Slot(t, key)
			owner, importing := cluster.Owner(slot)
			cluster.Migrate(t, slot, owner, importing)
			servers.Ask(t, owner, "CONFIG", "RESETSTAT")
			send(t, client, key)
			expectAnswered(t, owner, "ASK")
			// The importing node gives it up only when the slot is its own.
			cluster.Give(t, slot, key, owner, importing)
			expectOnce(t, storedAt(t, importing, key), page(1))
		})
	}
}

func TestARingIsCompressed(t *testing.T) {
	addresses := map[string]string{"one": servers.Valkey(t), "two": servers.Valkey(t)}
	ring := redis.NewRing(&redis.RingOptions{Addrs: addresses})
	compressor, err := goredis.Compress(ring, compression.Options{})
	ok(t, err)
	t.Cleanup(func() { ring.Close(); compressor.Close() })
	plain := redis.NewRing(&redis.RingOptions{Addrs: addresses})
	t.Cleanup(func() { plain.Close() })
	var got []*redis.StringCmd
	_, err = ring.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := range 10 {
			pipe.Set(ctx, fmt.Sprintf("key:%d", number), page(number), 0)
			got = append(got, pipe.Get(ctx, fmt.Sprintf("key:%d", number)))
		}
		return nil
	})
	ok(t, err)
	for number, each := range got {
		same(t, each.Val(), page(number))
		same(t, ring.Get(ctx, fmt.Sprintf("key:%d", number)).Val(), page(number))
		expectStored(t, plain, fmt.Sprintf("key:%d", number), page(number))
	}
	expectRefused(t, ring.Append(ctx, "key:1", "more").Err())
	ok(t, ring.Watch(ctx, func(tx *redis.Tx) error {
		same(t, tx.Get(ctx, "key:1").Val(), page(1))
		return nil
	}, "key:1"))
}
