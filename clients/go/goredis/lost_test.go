package goredis_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

// losing dials connections, of which one is lost as soon as the server has answered what names a key: after it was sent,
// and before the answer is seen.
type losing struct {
	key       string
	meanwhile func()
	lost      atomic.Int64 // How many connections.
}

func (l *losing) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialed, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &losable{Conn: dialed, of: l}, nil
}

type losable struct {
	net.Conn
	of     *losing
	isLost atomic.Bool
}

func (c *losable) Write(content []byte) (int, error) {
	if bytes.Contains(content, []byte(c.of.key)) && c.of.lost.CompareAndSwap(0, 1) {
		c.isLost.Store(true)
	}
	return c.Conn.Write(content)
}

func (c *losable) Read(buffer []byte) (int, error) {
	count, err := c.Conn.Read(buffer)
	if !c.isLost.Load() {
		return count, err
	}
	if c.of.meanwhile != nil {
		c.of.meanwhile()
	}
	c.Conn.Close()
	return 0, io.EOF
}

func TestWhatIsSentAgainAfterALostConnectionIsEncodedOnce(t *testing.T) {
	address := servers.Valkey(t)
	var cluster *servers.Cluster
	clients := map[string]func(dial *losing) redis.UniversalClient{
		"one server": func(dial *losing) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: address, Dialer: dial.dial})
		},
		"a cluster": func(dial *losing) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addresses, Dialer: dial.dial})
		},
		"a ring": func(dial *losing) redis.UniversalClient {
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": address}, Dialer: dial.dial})
		},
	}
	// go-redis sends neither transactions again, whose answer was lost, nor the pipelines of a Ring.
	ways := map[string]func(t *testing.T, client redis.UniversalClient, key string){
		"a single command": func(t *testing.T, client redis.UniversalClient, key string) {
			ok(t, client.Set(ctx, key, page(1), 0).Err())
		},
		"a reply with a value": func(t *testing.T, client redis.UniversalClient, key string) {
			set := client.SetArgs(ctx, key, page(1), redis.SetArgs{Get: true})
			// The first attempt has set it, too.
			same(t, good(t, set.Val(), set.Err()), page(1))
		},
		"a pipeline": func(t *testing.T, client redis.UniversalClient, key string) {
			exchange(t, client.Pipelined, key)
		},
	}
	for kind, open := range clients {
		t.Run(kind, func(t *testing.T) {
			if kind == "a cluster" {
				servers.Slow(t, servers.ClusterTakesLong)
				cluster = servers.NewCluster(t, 3)
			}
			for name, send := range ways {
				if kind == "a ring" && name == "a pipeline" {
					continue
				}
				t.Run(name, func(t *testing.T) {
					dial := losing{key: "lost:" + kind + ":" + name}
					client := open(&dial)
					// Wrapping would encode what is encoded already.
					compressor, err := goredis.Compress(client, compression.Options{ExistingEnvelopes: envelope.Wrap})
					ok(t, err)
					t.Cleanup(func() { client.Close(); compressor.Close() })
					send(t, client, dial.key)
					same(t, dial.lost.Load(), int64(1))
					holder := address
					if kind == "a cluster" {
						holder = ownerOf(t, cluster, dial.key)
					}
					expectOnce(t, storedAt(t, holder, dial.key), page(1))
				})
			}
		})
	}
}
