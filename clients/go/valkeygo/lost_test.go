package valkeygo_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

// losing dials connections, of which one is lost as soon as the server has answered what names a key: after it was sent,
// and before the answer is seen.
type losing struct {
	key       string
	meanwhile func()
	lost      atomic.Int64 // How many connections.
}

func (l *losing) dial(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
	dialed, err := dialer.DialContext(ctx, "tcp", address)
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

// sending are the ways of sending a value so that valkey-go sends it again after its connection was lost.
var sending = map[string]func(t *testing.T, client *valkeygo.Client, key string){
	"a single command": func(t *testing.T, client *valkeygo.Client, key string) {
		ok(t, client.Do(ctx, client.B().Set().Key(key).Value(page(1)).Build().ToRetryable()).Error())
	},
	"a reply with a value": func(t *testing.T, client *valkeygo.Client, key string) {
		// The first attempt has set it, too.
		is(t, page(1))(client.Do(ctx, client.B().Set().Key(key).Value(page(1)).Get().Build().ToRetryable()).ToString())
	},
	"several commands": func(t *testing.T, client *valkeygo.Client, key string) {
		results := client.DoMulti(ctx, client.B().Set().Key(key).Value(page(1)).Build().ToRetryable(), client.B().Get().Key(key).Build())
		ok(t, results[0].Error())
		is(t, page(1))(results[1].ToString())
	},
}

func TestWhatIsSentAgainAfterALostConnectionIsEncodedOnce(t *testing.T) {
	address := servers.Valkey(t)
	for _, kind := range []string{"one server", "a cluster"} {
		t.Run(kind, func(t *testing.T) {
			addresses := []string{address}
			var cluster *servers.Cluster
			if kind == "a cluster" {
				servers.Slow(t, servers.ClusterTakesLong)
				cluster = servers.NewCluster(t, 3)
				addresses = cluster.Addresses
			}
			for name, send := range sending {
				t.Run(name, func(t *testing.T) {
					dial := losing{key: "lost:" + kind + ":" + name}
					inner, err := valkey.NewClient(valkey.ClientOption{InitAddress: addresses, DialCtxFn: dial.dial})
					ok(t, err)
					// Wrapping would encode what is encoded already.
					client, err := valkeygo.Compress(inner, compression.Options{ExistingEnvelopes: envelope.Wrap})
					ok(t, err)
					t.Cleanup(client.Close)
					send(t, client, dial.key)
					same(t, dial.lost.Load(), int64(1))
					holder := address
					if kind == "a cluster" {
						holder, _ = cluster.Owner(cluster.Slot(t, dial.key))
					}
					expectOnce(t, servers.Ask(t, holder, "GET", dial.key), page(1))
				})
			}
		})
	}
}

func TestATransactionWhoseConnectionIsLostIsAnError(t *testing.T) {
	dial := losing{key: "lost"}
	client, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}, DialCtxFn: dial.dial})
	_ = client.Dedicated(func(own valkey.DedicatedClient) error {
		b := own.B()
		ok(t, own.Do(ctx, b.Multi().Build()).Error())
		ok(t, own.Do(ctx, b.Set().Key("key").Value(page(1)).Build()).Error())
		expectRefused(t, own.Do(ctx, b.Append().Key("key").Value("more").Build()).Error())
		if err := own.Do(ctx, b.Get().Key("lost").Build()).Error(); err == nil {
			t.Error("the connection is not lost")
		}
		expectRefused(t, own.Do(ctx, b.Exec().Build()).Error())
		return nil
	})
	same(t, exists(t, plain, "key"), false)
}
