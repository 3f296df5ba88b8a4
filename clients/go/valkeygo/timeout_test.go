package valkeygo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

// foreign is a client of an application's own, of a cluster.
type foreign struct{ valkey.Client }

func (foreign) Mode() valkey.ClientMode { return valkey.ClientModeCluster }

func TestTheTimeForAReplyIsTheTimeoutOfTheClient(t *testing.T) {
	timeoutOf := func(t *testing.T, settings valkey.ClientOption) time.Duration {
		t.Helper()
		client, err := valkey.NewClient(settings)
		ok(t, err)
		t.Cleanup(client.Close)
		return valkeygo.ReplyTimeout(client)
	}
	address := servers.Valkey(t)
	kinds := map[string]func(t *testing.T) valkey.ClientOption{
		"one server": func(*testing.T) valkey.ClientOption {
			return valkey.ClientOption{InitAddress: []string{address}}
		},
		"a server that stands alone": func(*testing.T) valkey.ClientOption {
			return valkey.ClientOption{InitAddress: []string{address}, Standalone: valkey.StandaloneOption{EnableRedirect: true}}
		},
		"a sentinel": func(t *testing.T) valkey.ClientOption {
			return valkey.ClientOption{InitAddress: []string{servers.Sentinel(t, address)}, Sentinel: valkey.SentinelOption{MasterSet: "primary"}}
		},
		"a cluster": func(t *testing.T) valkey.ClientOption {
			servers.Slow(t, servers.ClusterTakesLong)
			return valkey.ClientOption{InitAddress: servers.NewCluster(t, 3).Addresses}
		},
	}
	for name, settings := range kinds {
		t.Run(name, func(t *testing.T) {
			settings := settings(t)
			if timeoutOf(t, settings) <= 0 {
				t.Error("there is none by default")
			}
			settings.ConnWriteTimeout = 70 * time.Second
			same(t, timeoutOf(t, settings), 70*time.Second)
		})
	}
	for name, client := range map[string]valkey.Client{"none": nil, "a client of an application's own": foreign{}, "a pointer to one": &foreign{}} {
		if timeout := valkeygo.ReplyTimeout(client); timeout != 0 {
			t.Errorf("%s: %v", name, timeout)
		}
	}
}

func TestADictionaryThatIsNotThereIsWaitedForNoLongerThanAReply(t *testing.T) {
	servers.Slow(t, "it waits for a timeout of the client")
	// Nobody sees the end of a round.
	client, plain := open(t, compression.Options{DictionaryRefresh: 24 * time.Hour}, valkey.ClientOption{
		InitAddress: []string{servers.Valkey(t)}, ConnWriteTimeout: time.Second,
	})
	missing := another(t, 1)
	storeWith(t, plain, missing, "key")
	nameInCatalogue(t, plain, missing)
	undecodable := (*envelope.UndecodableError)(nil)
	if err := client.Do(ctx, client.B().Get().Key("key").Build()).Error(); !errors.As(err, &undecodable) || undecodable.Kind != envelope.DictionaryMissing {
		t.Errorf("got %v", err)
	}
}
