package valkeygo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/internal/vectors"
	"snugly.dev/go/valkeygo"
)

var ctx = context.Background()

// page is a value that compresses.
func page(number int) string {
	return strings.Repeat(fmt.Sprintf(`{"page": %d, "hello": "world"}`, number), 40)
}

var everything = compression.Options{ValueTypes: []compression.ValueType{
	compression.Strings, compression.Hashes, compression.Lists, compression.Streams,
}}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t testing.TB, got, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %.300q, wanted %.300q", fmt.Sprint(got), fmt.Sprint(wanted))
	}
}

// is fails the test if a reply is not this one.
func is[T any](t testing.TB, wanted T) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		ok(t, err)
		same(t, got, wanted)
	}
}

// open makes a client that compresses, and one that does not.
func open(t testing.TB, options compression.Options, settings valkey.ClientOption) (client *valkeygo.Client, plain valkey.Client) {
	t.Helper()
	inner, err := valkey.NewClient(settings)
	ok(t, err)
	client, err = valkeygo.Compress(inner, options)
	ok(t, err)
	plain, err = valkey.NewClient(settings)
	ok(t, err)
	t.Cleanup(func() { client.Close(); plain.Close() })
	return client, plain
}

func eachProtocol(t *testing.T, options compression.Options, test func(t *testing.T, client *valkeygo.Client, plain valkey.Client)) {
	address := servers.Valkey(t)
	for _, isRESP2 := range []bool{true, false} {
		t.Run(fmt.Sprintf("RESP2 %v", isRESP2), func(t *testing.T) {
			client, plain := open(t, options, valkey.ClientOption{InitAddress: []string{address}, AlwaysRESP2: isRESP2, DisableCache: isRESP2})
			ok(t, plain.Do(ctx, plain.B().Flushall().Build()).Error())
			test(t, client, plain)
		})
	}
}

func expectOnce(t testing.TB, stored, value string) {
	t.Helper()
	if !compression.IsEnvelope(stored) || len(stored) > len(value)/2 {
		t.Fatalf("%d bytes that are not compressed", len(stored))
	}
	codec, err := envelope.New(envelope.Options{})
	ok(t, err)
	read, err := codec.Decode(nil, []byte(stored))
	ok(t, err)
	same(t, string(read), value)
}

func expectStored(t testing.TB, plain valkey.Client, key, value string) {
	t.Helper()
	stored, err := plain.Do(ctx, plain.B().Get().Key(key).Build()).ToString()
	ok(t, err)
	expectOnce(t, stored, value)
}

func expectRefused(t testing.TB, err error) {
	t.Helper()
	var refused *compression.RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

func TestValuesOfStringsAreCompressedAndRestored(t *testing.T) {
	eachProtocol(t, compression.Options{}, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		b := client.B()
		ok(t, client.Do(ctx, b.Set().Key("set").Value(page(1)).ExSeconds(60).Build()).Error())
		ok(t, client.Do(ctx, b.Mset().KeyValue().KeyValue("mset:1", page(2)).KeyValue("mset:2", page(3)).Build()).Error())
		ok(t, client.Do(ctx, b.Arbitrary("psetex").Keys("arbitrary").Args("60000", page(4)).Build()).Error())
		for key, number := range map[string]int{"set": 1, "mset:1": 2, "mset:2": 3, "arbitrary": 4} {
			expectStored(t, plain, key, page(number))
			is(t, page(number))(client.Do(ctx, b.Get().Key(key).Build()).ToString())
		}
		is(t, []string{page(1), "", page(2)})(client.Do(ctx, b.Mget().Key("set", "none", "mset:1").Build()).AsStrSlice())
		is(t, page(1))(client.Do(ctx, b.Set().Key("set").Value(page(5)).Get().Build()).ToString())
		is(t, page(5))(client.Do(ctx, b.Getdel().Key("set").Build()).ToString())
		if err := client.Do(ctx, b.Get().Key("set").Build()).Error(); !valkey.IsValkeyNil(err) {
			t.Errorf("got %v", err)
		}
		ok(t, client.Do(ctx, b.Set().Key("counter").Value("41").Build()).Error())
		is(t, int64(42))(client.Do(ctx, b.Incr().Key("counter").Build()).AsInt64())
	})
}

func TestValuesOfOtherTypesAreCompressedIfThatIsWanted(t *testing.T) {
	eachProtocol(t, everything, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		b := client.B()
		ok(t, client.Do(ctx, b.Hset().Key("hash").FieldValue().FieldValue("one", page(1)).FieldValue("two", "short").Build()).Error())
		stored, err := plain.Do(ctx, plain.B().Hget().Key("hash").Field("one").Build()).ToString()
		ok(t, err)
		expectOnce(t, stored, page(1))
		is(t, map[string]string{"one": page(1), "two": "short"})(client.Do(ctx, b.Hgetall().Key("hash").Build()).AsStrMap())
		is(t, []string{page(1), ""})(client.Do(ctx, b.Hmget().Key("hash").Field("one", "none").Build()).AsStrSlice())
		entry, err := client.Do(ctx, b.Hscan().Key("hash").Cursor(0).Build()).AsScanEntry()
		ok(t, err)
		same(t, len(entry.Elements), 4)
		for at := 0; at+1 < len(entry.Elements); at += 2 {
			same(t, compression.IsEnvelope(entry.Elements[at+1]), false)
		}

		ok(t, client.Do(ctx, b.Rpush().Key("list").Element(page(1), page(2), page(3)).Build()).Error())
		is(t, []string{page(1), page(2), page(3)})(client.Do(ctx, b.Lrange().Key("list").Start(0).Stop(-1).Build()).AsStrSlice())
		is(t, page(1))(client.Do(ctx, b.Lpop().Key("list").Build()).ToString())
		is(t, []string{"list", page(2)})(client.Do(ctx, b.Blpop().Key("none", "list").Timeout(1).Build()).AsStrSlice())
		is(t, valkey.KeyValues{Key: "list", Values: []string{page(3)}})(client.Do(ctx, b.Lmpop().Numkeys(1).Key("list").Left().Build()).AsLMPop())

		id, err := client.Do(ctx, b.Xadd().Key("stream").Id("*").FieldValue().FieldValue("field", page(1)).Build()).ToString()
		ok(t, err)
		found := []valkey.XRangeEntry{{ID: id, FieldValues: map[string]string{"field": page(1)}}}
		is(t, found)(client.Do(ctx, b.Xrange().Key("stream").Start("-").End("+").Build()).AsXRange())
		is(t, map[string][]valkey.XRangeEntry{"stream": found})(client.Do(ctx, b.Xread().Streams().Key("stream").Id("0").Build()).AsXRead())
	})
}

func TestSeveralCommandsAtOnce(t *testing.T) {
	eachProtocol(t, compression.Options{}, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		var many valkey.Commands
		for number := range 20 {
			many = append(many, client.B().Set().Key(fmt.Sprint(number)).Value(page(number)).Build())
		}
		many = append(many, client.B().Append().Key("0").Value("more").Build())
		for number := range 20 {
			many = append(many, client.B().Get().Key(fmt.Sprint(number)).Build())
		}
		results := client.DoMulti(ctx, many...)
		expectRefused(t, results[20].Error())
		for number, result := range results[21:] {
			is(t, page(number))(result.ToString())
		}
		expectStored(t, plain, "7", page(7))

		results = client.DoMulti(ctx, client.B().Multi().Build(), client.B().Set().Key("transaction").Value(page(1)).Build(),
			client.B().Get().Key("transaction").Build(), client.B().Incr().Key("counter").Build(), client.B().Exec().Build())
		replies, err := results[4].ToArray()
		ok(t, err)
		is(t, page(1))(replies[1].ToString())

		results = client.DoMulti(ctx, client.B().Multi().Build(), client.B().Set().Key("refused").Value(page(1)).Build(),
			client.B().Strlen().Key("refused").Build(), client.B().Exec().Build())
		for _, result := range results {
			expectRefused(t, result.Error())
		}
		is(t, int64(0))(plain.Do(ctx, plain.B().Exists().Key("refused").Build()).AsInt64())
		same(t, len(client.DoMulti(ctx)), 0)
	})
}

func TestACacheHoldsCompressedValuesThatAreRestoredOnEachHit(t *testing.T) {
	client, plain := open(t, everything, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	for number := range 3 {
		ok(t, client.Do(ctx, client.B().Set().Key(fmt.Sprint("key:", number)).Value(page(number)).Build()).Error())
	}
	ok(t, client.Do(ctx, client.B().Hset().Key("hash").FieldValue().FieldValue("field", page(1)).Build()).Error())
	for round := range 3 {
		result := client.DoCache(ctx, client.B().Get().Key("key:1").Cache(), time.Minute)
		is(t, page(1))(result.ToString())
		same(t, result.IsCacheHit(), round > 0)
		// A value that is shared by all hits must not change.
		is(t, map[string]string{"field": page(1)})(client.DoCache(ctx, client.B().Hgetall().Key("hash").Cache(), time.Minute).AsStrMap())
		for number, result := range client.DoMultiCache(ctx, valkey.CT(client.B().Get().Key("key:0").Cache(), time.Minute), valkey.CT(client.B().Get().Key("key:1").Cache(), time.Minute)) {
			is(t, page(number))(result.ToString())
		}
		values, err := valkey.MGetCache(client, ctx, time.Minute, []string{"key:0", "key:2"})
		ok(t, err)
		message := values["key:2"]
		is(t, page(2))(message.ToString())
	}
	ok(t, plain.Do(ctx, plain.B().Set().Key("key:1").Value("other").Build()).Error())
	servers.Eventually(t, "the cache still has the old value", func() bool {
		value, err := client.DoCache(ctx, client.B().Get().Key("key:1").Cache(), time.Minute).ToString()
		return err == nil && value == "other"
	})
}

func TestRefusedCommandsAreNotSent(t *testing.T) {
	client, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	ok(t, client.Do(ctx, client.B().Set().Key("key").Value(page(1)).Build()).Error())
	expectRefused(t, client.Do(ctx, client.B().Append().Key("key").Value("more").Build()).Error())
	expectRefused(t, client.DoCache(ctx, client.B().Strlen().Key("key").Cache(), time.Minute).Error())
	expectRefused(t, client.DoMultiCache(ctx, valkey.CT(client.B().Strlen().Key("key").Cache(), time.Minute))[0].Error())
	cached := client.DoMultiCache(ctx, valkey.CT(client.B().Strlen().Key("key").Cache(), time.Minute), valkey.CT(client.B().Get().Key("key").Cache(), time.Minute))
	expectRefused(t, cached[0].Error())
	is(t, page(1))(cached[1].ToString())
	same(t, len(client.DoMultiCache(ctx)), 0)
	stream := client.DoStream(ctx, client.B().Get().Key("key").Build())
	expectRefused(t, stream.Error())
	streams := client.DoMultiStream(ctx, client.B().Get().Key("key").Build())
	expectRefused(t, streams.Error())
	expectStored(t, plain, "key", page(1))
	t.Run("but other commands stream", func(t *testing.T) {
		var streamed bytes.Buffer
		stream := client.DoStream(ctx, client.B().Echo().Message("hello").Build())
		_, err := stream.WriteTo(&streamed)
		ok(t, err)
		same(t, streamed.String(), "hello")
	})
}

func TestAPinnedCommandCanBeSentAgain(t *testing.T) {
	client, plain := open(t, compression.Options{ExistingEnvelopes: envelope.Wrap}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	command := client.B().Set().Key("key").Value(page(1)).Build().Pin()
	for range 3 {
		ok(t, client.Do(ctx, command).Error())
		expectStored(t, plain, "key", page(1))
	}
	same(t, command.Commands(), []string{"SET", "key", page(1)})
}

func TestAValueThatCannotBeReadIsAnErrorOfItsCommand(t *testing.T) {
	client, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	ok(t, plain.Do(ctx, plain.B().Set().Key("damaged").Value("\x00\x01\x02\x00\x01damage").Build()).Error())
	results := client.DoMulti(ctx, client.B().Get().Key("damaged").Build(), client.B().Mget().Key("other", "damaged").Build(), client.B().Ping().Build())
	for _, result := range results[:2] {
		var undecodable *envelope.UndecodableError
		if err := result.Error(); !errors.As(err, &undecodable) || undecodable.Kind != envelope.Corrupt || undecodable.Key != "damaged" {
			t.Errorf("got %v", err)
		}
	}
	ok(t, results[2].Error())
}

func TestDictionariesAreReadAndUsed(t *testing.T) {
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	dictionary, err := envelope.LoadDictionary(read.Dictionaries["profiles"].Bytes)
	ok(t, err)
	key, value := fmt.Sprintf("{snugly}:dict:%d", dictionary.ID()), `{"name": "name-1", "email": "email-2", "city": "city-3", "country": "country-4"}`
	settings := valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}}
	writer, plain := open(t, compression.Options{Dictionary: dictionary, DictionaryRefresh: 200 * time.Millisecond}, settings)
	servers.Eventually(t, "it is not written with", func() bool {
		ok(t, writer.Do(ctx, writer.B().Set().Key("user:1").Value(value).Build()).Error())
		stored, err := plain.Do(ctx, plain.B().Get().Key("user:1").Build()).AsBytes()
		ok(t, err)
		header, _ := envelope.Inspect(stored)
		return header.Dictionary == dictionary.ID()
	})
	reader, _ := open(t, compression.Options{Backend: envelope.None}, settings)
	is(t, value)(reader.Do(ctx, reader.B().Get().Key("user:1").Build()).ToString())
	same(t, reader.Compressor().Statistics().DictionariesFetched, uint64(1))
	ok(t, plain.Do(ctx, plain.B().Del().Key(key).Build()).Error())
	servers.Eventually(t, "it was not put back", func() bool {
		count, err := plain.Do(ctx, plain.B().Exists().Key(key).Build()).AsInt64()
		return err == nil && count == 1
	})
}

func TestSnuglysOwnServerTakesWhatIsCompressed(t *testing.T) {
	client, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: []string{servers.Snugly(t)}})
	ok(t, client.Do(ctx, client.B().Set().Key("key").Value(page(1)).Build()).Error())
	for range 2 {
		is(t, page(1))(client.DoCache(ctx, client.B().Get().Key("key").Cache(), time.Minute).ToString())
	}
	expectStored(t, plain, "key", page(1))
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	var refused *envelope.OptionError
	if _, err := valkeygo.Compress(nil, compression.Options{CompressionLevel: 99}); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

func TestAClientThatIsNotThereIsRefused(t *testing.T) {
	if _, err := valkeygo.Compress(nil, compression.Options{}); err == nil {
		t.Error("it was taken")
	}
}

func TestTheExampleRuns(t *testing.T) {
	address = servers.Valkey(t)
	ExampleCompress()
	_, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: []string{address}})
	expectStored(t, plain, "page:1", "<html>"+strings.Repeat("<p>hello</p>", 500))
}

func TestAReplyWithoutAnEnvelopeIsReadWithoutAllocatingMore(t *testing.T) {
	client, plain := open(t, compression.Options{}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	ok(t, plain.Do(ctx, plain.B().Set().Key("key").Value("short").Build()).Error())
	do := func(client valkey.Client) error { return client.Do(ctx, client.B().Get().Key("key").Build()).Error() }
	doCache := func(client valkey.Client) error {
		return client.DoCache(ctx, client.B().Get().Key("key").Cache(), time.Hour).Error()
	}
	// The least of some runs: what the clients' own goroutines allocate meanwhile is counted as well.
	allocations := func(client valkey.Client, read func(valkey.Client) error) float64 {
		least := math.Inf(1)
		for range 5 {
			least = min(least, testing.AllocsPerRun(200, func() { ok(t, read(client)) }))
		}
		return least
	}
	// The first DoCache makes room for what is under way on the connection.
	if more := allocations(client, doCache) - allocations(plain, doCache); more > 0 {
		t.Errorf("DoCache: %v allocations more", more)
	}
	if more := allocations(client, do) - allocations(plain, do); more > 0 {
		t.Errorf("Do: %v allocations more", more)
	}
}

func exists(t testing.TB, plain valkey.Client, key string) bool {
	t.Helper()
	count, err := plain.Do(ctx, plain.B().Exists().Key(key).Build()).AsInt64()
	ok(t, err)
	return count > 0
}
