package valkeygo_test

import (
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

func TestAClientOfASentinelIsCompressed(t *testing.T) {
	sentinel := servers.Sentinel(t, servers.Valkey(t))
	client, plain := open(t, compression.Options{}, valkey.ClientOption{
		InitAddress: []string{sentinel}, Sentinel: valkey.SentinelOption{MasterSet: "primary"},
	})
	ok(t, client.Do(ctx, client.B().Set().Key("key").Value(page(1)).Build()).Error())
	is(t, page(1))(client.Do(ctx, client.B().Get().Key("key").Build()).ToString())
	expectStored(t, plain, "key", page(1))
}

func TestWhatIsSentAgainAfterAFailoverIsEncodedOnce(t *testing.T) {
	servers.Slow(t, servers.FailoverTakesLong)
	for name, send := range sending {
		if name == "a reply with a value" {
			continue // What was written last need not be in the replica yet.
		}
		t.Run(name, func(t *testing.T) {
			primary, replica, sentinel := servers.Watched(t)
			dial := losing{key: "lost", meanwhile: func() { servers.FailOver(t, sentinel, replica) }}
			inner, err := valkey.NewClient(valkey.ClientOption{
				InitAddress: []string{sentinel}, Sentinel: valkey.SentinelOption{MasterSet: "primary"}, DialCtxFn: dial.dial,
				ConnWriteTimeout: time.Minute, // A failover may take longer than the default.
			})
			ok(t, err)
			client, err := valkeygo.Compress(inner, compression.Options{ExistingEnvelopes: envelope.Wrap})
			ok(t, err)
			t.Cleanup(client.Close)
			ok(t, client.Do(ctx, client.B().Set().Key("before").Value(page(2)).Build()).Error())
			expectOnce(t, servers.Ask(t, primary, "GET", "before"), page(2))
			send(t, client, dial.key)
			same(t, dial.lost.Load(), int64(1))
			expectOnce(t, servers.Ask(t, replica, "GET", dial.key), page(1))
			expectRefused(t, client.Do(ctx, client.B().Append().Key(dial.key).Value("more").Build()).Error())
		})
	}
}
