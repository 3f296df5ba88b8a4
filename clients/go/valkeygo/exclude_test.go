package valkeygo_test

import (
	"testing"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

// release deletes a lock if it is still the caller's.
const release = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

func TestValuesOfExcludedKeysAreSentAsTheyAre(t *testing.T) {
	options := everything
	options.Exclude = []string{"lock:*", "h?sh:[ab]"}
	eachProtocol(t, options, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		b := client.B
		ok(t, client.Do(ctx, b().Set().Key("lock:set").Value(page(1)).Build()).Error())
		ok(t, client.Do(ctx, b().Mset().KeyValue().KeyValue("lock:mset", page(2)).KeyValue("user:mset", page(3)).Build()).Error())
		for _, result := range client.DoMulti(ctx, b().Set().Key("lock:multi").Value(page(4)).Build(), b().Set().Key("user:multi").Value(page(5)).Build()) {
			ok(t, result.Error())
		}
		for key, number := range map[string]int{"lock:set": 1, "lock:mset": 2, "lock:multi": 4} {
			is(t, page(number))(plain.Do(ctx, plain.B().Get().Key(key).Build()).ToString())
			is(t, page(number))(client.Do(ctx, b().Get().Key(key).Build()).ToString())
		}
		expectStored(t, plain, "user:mset", page(3))
		expectStored(t, plain, "user:multi", page(5))
		// It is the key of the hash that matters, not the field.
		ok(t, client.Do(ctx, b().Hset().Key("hash:a").FieldValue().FieldValue("field", page(6)).Build()).Error())
		ok(t, client.Do(ctx, b().Hset().Key("hash:c").FieldValue().FieldValue("lock:1", page(7)).Build()).Error())
		is(t, page(6))(plain.Do(ctx, plain.B().Hget().Key("hash:a").Field("field").Build()).ToString())
		stored, err := plain.Do(ctx, plain.B().Hget().Key("hash:c").Field("lock:1").Build()).ToString()
		ok(t, err)
		expectOnce(t, stored, page(7))
	})
}

func TestAScriptComparesALockWhoseKeyIsExcluded(t *testing.T) {
	options := everything
	options.Exclude = []string{"lock:*"}
	client, _ := open(t, options, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	b := client.B
	for key, released := range map[string]int64{"lock:1": 1, "other:1": 0} {
		ok(t, client.Do(ctx, b().Set().Key(key).Value(page(1)).Nx().ExSeconds(60).Build()).Error())
		is(t, released)(client.Do(ctx, b().Eval().Script(release).Numkeys(1).Key(key).Arg(page(1)).Build()).AsInt64())
	}
}
