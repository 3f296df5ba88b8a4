package valkeygo_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

const damaged = "\x00\x01\x02\x00\x01damage"

func TestWhatCannotBeReadIsMissedAsWhatIsNotThere(t *testing.T) {
	options := everything
	options.OnUndecodable = envelope.Miss
	eachProtocol(t, options, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		b := client.B
		for _, command := range []valkey.Completed{
			plain.B().Mset().KeyValue().KeyValue("good", "one").KeyValue("bad", damaged).Build(),
			plain.B().Hset().Key("hash").FieldValue().FieldValue("bad", damaged).FieldValue("good", "one").Build(),
			plain.B().Rpush().Key("list").Element("one", damaged).Build(),
		} {
			ok(t, plain.Do(ctx, command).Error())
		}
		for _, command := range []valkey.Completed{
			b().Get().Key("bad").Build(), b().Hget().Key("hash").Field("bad").Build(), b().Lindex().Key("list").Index(1).Build(),
		} {
			if err := client.Do(ctx, command).Error(); !valkey.IsValkeyNil(err) {
				t.Errorf("%v: %v", command.Commands(), err)
			}
		}
		for name, command := range map[string]valkey.Completed{
			"MGET": b().Mget().Key("good", "bad").Build(), "HMGET": b().Hmget().Key("hash").Field("good", "bad").Build(), "LRANGE": b().Lrange().Key("list").Start(0).Stop(-1).Build(),
		} {
			elements, err := client.Do(ctx, command).ToArray()
			ok(t, err)
			if len(elements) != 2 || !elements[1].IsNil() {
				t.Errorf("%s: %v", name, elements)
			}
			is(t, "one")(elements[0].ToString())
		}
		results := client.DoMulti(ctx, b().Get().Key("bad").Build(), b().Get().Key("good").Build())
		if !valkey.IsValkeyNil(results[0].Error()) {
			t.Errorf("in a pipeline: %v", results[0].Error())
		}
		is(t, "one")(results[1].ToString())
		if fields, err := client.Do(ctx, b().Hgetall().Key("hash").Build()).AsStrMap(); err != nil || fields["good"] != "one" || fields["bad"] != "" {
			t.Errorf("HGETALL: %v, %v", fields, err)
		}
	})
}

func TestAValueWhoseDictionaryIsNotThereIsMissed(t *testing.T) {
	client, plain := open(t, compression.Options{OnUndecodable: envelope.Miss}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	b := client.B
	storeWith(t, plain, another(t, 1), "bad")
	storeWith(t, plain, another(t, 2), "worse")
	ok(t, plain.Do(ctx, plain.B().Set().Key("good").Value("one").Build()).Error())
	if err := client.Do(ctx, b().Get().Key("bad").Build()).Error(); !valkey.IsValkeyNil(err) {
		t.Errorf("got %v", err)
	}
	is(t, []string{"", "one", ""})(client.Do(ctx, b().Mget().Key("bad", "good", "worse").Build()).AsStrSlice())
	counted := client.Compressor().Statistics()
	same(t, []uint64{counted.DecodeFailures, counted.DictionaryMisses}, []uint64{3, 3})
}

func TestMissesAreCountedAndOneIsLogged(t *testing.T) {
	var logged bytes.Buffer
	options := compression.Options{OnUndecodable: envelope.Miss, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	client, plain := open(t, options, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	b := client.B
	ok(t, plain.Do(ctx, plain.B().Mset().KeyValue().KeyValue("good", "one").KeyValue("bad", damaged).Build()).Error())
	for range 2 {
		if err := client.Do(ctx, b().Get().Key("bad").Build()).Error(); !valkey.IsValkeyNil(err) {
			t.Errorf("got %v", err)
		}
	}
	is(t, []string{"one", ""})(client.Do(ctx, b().Mget().Key("good", "bad").Build()).AsStrSlice())
	same(t, client.Compressor().Statistics().DecodeFailures, uint64(3))
	if text := logged.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, `at key \"bad\"`) {
		t.Errorf("%q was logged", text)
	}
}

func TestWhatOneReplyIsRestoredToIsBounded(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	client, _ := open(t, compression.Options{MaxReplyBytes: 25_000}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	b := client.B
	ok(t, client.Do(ctx, b().Mset().KeyValue().KeyValue("1", long).KeyValue("2", long).KeyValue("3", long).Build()).Error())
	isTooLarge := func(err error) {
		t.Helper()
		undecodable := (*envelope.UndecodableError)(nil)
		if !errors.As(err, &undecodable) || undecodable.Kind != envelope.TooLarge {
			t.Errorf("got %v", err)
		}
	}
	is(t, []string{long, long})(client.Do(ctx, b().Mget().Key("1", "2").Build()).AsStrSlice())
	isTooLarge(client.Do(ctx, b().Mget().Key("1", "2", "3").Build()).Error())
	cached := func(key string) valkey.CacheableTTL { return valkey.CT(b().Get().Key(key).Cache(), time.Minute) }
	for name, results := range map[string][]valkey.ValkeyResult{
		"several commands":            client.DoMulti(ctx, b().Get().Key("1").Build(), b().Get().Key("2").Build(), b().Get().Key("3").Build()),
		"several that are cached":     client.DoMultiCache(ctx, cached("1"), cached("2"), cached("3")),
		"what the client has by then": client.DoMultiCache(ctx, cached("1"), cached("2"), cached("3")),
	} {
		t.Run(name, func(t *testing.T) {
			is(t, long)(results[1].ToString())
			isTooLarge(results[2].Error())
		})
	}
}
