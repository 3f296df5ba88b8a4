package valkeygo_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

func TestAClusterIsCompressed(t *testing.T) {
	servers.Slow(t, servers.ClusterTakesLong)
	cluster := servers.NewCluster(t, 3)
	client, plain := open(t, compression.Options{ExistingEnvelopes: envelope.Wrap}, valkey.ClientOption{InitAddress: cluster.Addresses})
	values := map[string]string{}
	for number := range 20 {
		values[fmt.Sprint("key:", number)] = page(number)
	}
	for key, err := range valkey.MSet(client, ctx, values) {
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	read, err := valkey.MGet(client, ctx, []string{"key:1", "key:2", "key:3"})
	ok(t, err)
	for number := 1; number <= 3; number++ {
		message := read[fmt.Sprint("key:", number)]
		is(t, page(number))(message.ToString())
		expectStored(t, plain, fmt.Sprint("key:", number), page(number))
	}
	for _, node := range client.Nodes() {
		expectRefused(t, node.Do(ctx, node.B().Append().Key("key:1").Value("more").Build()).Error())
	}
}

func TestClosingTheClientOfANodeLeavesTheDictionariesToTheCluster(t *testing.T) {
	servers.Slow(t, servers.ClusterTakesLong)
	cluster := servers.NewCluster(t, 3)
	given := another(t, 0)
	client, plain := open(t, compression.Options{Dictionary: given, DictionaryRefresh: 200 * time.Millisecond}, valkey.ClientOption{InitAddress: cluster.Addresses})
	key := fmt.Sprintf("{snugly}:dict:%d", given.ID())
	isThere := func() bool { return exists(t, plain, key) }
	holder, other := cluster.Owner(cluster.Slot(t, key))
	nodes := client.Nodes()
	ok(t, nodes[holder].Do(ctx, client.B().Set().Key(key+":other").Value(page(1)).Build()).Error())
	servers.Eventually(t, "the dictionary is not put beside the data", isThere)

	nodes[other].Close()
	ok(t, plain.Do(ctx, plain.B().Del().Key(key).Build()).Error())
	servers.Eventually(t, "the dictionary is not put back", isThere)

	client.Close()
	ok(t, plain.Do(ctx, plain.B().Del().Key(key).Build()).Error())
	_ = nodes[holder].Do(ctx, client.B().Set().Key(key+":other").Value(page(1)).Build()).Error()
	if isKept() {
		t.Error("somebody looks after the dictionaries of a client that is closed")
	}
}

// isKept tells whether a goroutine looks after dictionaries, of any client.
func isKept() bool {
	goroutines := make([]byte, 1<<20)
	return bytes.Contains(goroutines[:runtime.Stack(goroutines, true)], []byte("catalogue.(*DictionaryManager).refreshLoop"))
}

func TestAClusterFindsTheNodeAsTheCommandSays(t *testing.T) {
	servers.Slow(t, servers.ClusterTakesLong)
	cluster := servers.NewCluster(t, 3)
	client, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: cluster.Addresses})
	b := client.B()
	// Arguments that are not said to be keys name no slot, so these need not be of one.
	several := b.Arbitrary("MSET").Args("key:1", page(1), "key:2", page(2)).Build()
	if _, isReply := valkey.IsValkeyErr(client.Do(ctx, several).Error()); !isReply {
		t.Error("the server did not complain of two slots")
	}
	ok(t, client.Dedicated(func(own valkey.DedicatedClient) error {
		ok(t, own.Do(ctx, b.Watch().Key("key:1").Build()).Error())
		own.Do(ctx, b.Arbitrary("SET").Args("key:2", page(2)).Build())
		return nil
	}))
	ok(t, client.Do(ctx, b.Arbitrary("SET").Args("key:3", page(3)).Build().SetSlot("key:3")).Error())
	expectStored(t, plain, "key:3", page(3))
}

func TestDedicatedClientsOfAClusterAreCompressed(t *testing.T) {
	servers.Slow(t, servers.ClusterTakesLong)
	cluster := servers.NewCluster(t, 3)
	client, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: cluster.Addresses})
	ok(t, client.Dedicated(func(own valkey.DedicatedClient) error {
		b := own.B()
		ok(t, own.Do(ctx, b.Watch().Key("{own}:1").Build()).Error())
		ok(t, own.Do(ctx, b.Multi().Build()).Error())
		ok(t, own.Do(ctx, b.Set().Key("{own}:1").Value(page(1)).Build()).Error())
		ok(t, own.Do(ctx, b.Get().Key("{own}:1").Build()).Error())
		replies, err := own.Do(ctx, b.Exec().Build()).ToArray()
		ok(t, err)
		is(t, page(1))(replies[1].ToString())

		results := own.DoMulti(ctx, b.Multi().Build(), b.Set().Key("{own}:2").Value(page(2)).Build(), b.Mget().Key("{own}:1", "{own}:2").Build(), b.Exec().Build())
		replies, err = results[3].ToArray()
		ok(t, err)
		is(t, []string{page(1), page(2)})(replies[1].AsStrSlice())

		ok(t, own.Do(ctx, b.Multi().Build()).Error())
		ok(t, own.Do(ctx, b.Set().Key("{own}:1").Value(page(3)).Build()).Error())
		expectRefused(t, own.Do(ctx, b.Append().Key("{own}:1").Value("more").Build()).Error())
		expectRefused(t, own.Do(ctx, b.Exec().Build()).Error())
		is(t, page(1))(own.Do(ctx, b.Get().Key("{own}:1").Build()).ToString())
		return nil
	}))
	expectStored(t, plain, "{own}:2", page(2))
}

// expectAnswered fails the test if a node has not answered with an error of this kind.
func expectAnswered(t *testing.T, address, kind string) {
	t.Helper()
	if answered := servers.Ask(t, address, "INFO", "errorstats"); !strings.Contains(answered, "errorstat_"+kind) {
		t.Errorf("no %s was answered, but %q", kind, answered)
	}
}

func TestWhatIsSentToAnotherNodeIsEncodedAndRestoredOnce(t *testing.T) {
	cluster := servers.NewCluster(t, 3)
	// Each way of sending a value and reading it.
	ways := map[string]func(t *testing.T, client *valkeygo.Client, key string){
		"single commands": func(t *testing.T, client *valkeygo.Client, key string) {
			ok(t, client.Do(ctx, client.B().Set().Key(key).Value(page(1)).Build()).Error())
			is(t, page(1))(client.Do(ctx, client.B().Get().Key(key).Build()).ToString())
		},
		"several commands": func(t *testing.T, client *valkeygo.Client, key string) {
			results := client.DoMulti(ctx, client.B().Set().Key(key).Value(page(1)).Build(), client.B().Get().Key(key).Build(),
				client.B().Set().Key(key).Value(page(1)).Get().Build(), client.B().Append().Key(key).Value("more").Build())
			ok(t, results[0].Error())
			is(t, page(1))(results[1].ToString())
			is(t, page(1))(results[2].ToString())
			expectRefused(t, results[3].Error())
		},
	}
	for name, send := range ways {
		for kind, move := range map[string]func(key string, slot int, owner, other string){
			"MOVED": func(key string, slot int, owner, other string) { cluster.Give(t, slot, key, owner, other) },
			"ASK":   func(key string, slot int, owner, other string) { cluster.Migrate(t, slot, owner, other) },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				// A client knows which node has which slot when it is made. Wrapping would encode what is encoded already.
				client, _ := open(t, compression.Options{ExistingEnvelopes: envelope.Wrap}, valkey.ClientOption{InitAddress: cluster.Addresses})
				key := kind + ":" + name
				slot := cluster.Slot(t, key)
				owner, other := cluster.Owner(slot)
				move(key, slot, owner, other)
				servers.Ask(t, owner, "CONFIG", "RESETSTAT")
				send(t, client, key)
				expectAnswered(t, owner, kind)
				if kind == "ASK" {
					// A node that imports a slot answers for it only when it is its own.
					cluster.Give(t, slot, key, owner, other)
				}
				expectOnce(t, servers.Ask(t, other, "GET", key), page(1))
			})
		}
	}
}
