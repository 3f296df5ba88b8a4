package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

var ctx = context.Background()

// page is a value that compresses.
func page(number int) string {
	return strings.Repeat(fmt.Sprintf(`{"page": %d, "hello": "world"}`, number), 40)
}

// damaged is an envelope that cannot be read.
const damaged = "\x00\x01\x02\x00\x01damage"

var everything = compression.Options{ValueTypes: []compression.ValueType{
	compression.Strings, compression.Hashes, compression.Lists, compression.Streams,
}}

// opened is a client of a server that compresses, and one that does not.
type opened struct {
	client, plain *redis.Client
	compressor    *compression.Compressor
}

func open(t testing.TB, address string, options compression.Options, change ...func(*redis.Options)) opened {
	t.Helper()
	settings := redis.Options{Addr: address}
	for _, each := range change {
		each(&settings)
	}
	copied := settings
	made := opened{client: redis.NewClient(&settings), plain: redis.NewClient(&copied)}
	compressor, err := goredis.Compress(made.client, options)
	if err != nil {
		t.Fatal(err)
	}
	made.compressor = compressor
	t.Cleanup(func() { made.client.Close(); made.plain.Close(); compressor.Close() })
	return made
}

// good fails the test for an error.
func good[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// ok fails the test for an error, but for those that are expected.
func ok(t testing.TB, err error, expected ...error) {
	t.Helper()
	if err != nil && !slices.Contains(expected, err) {
		t.Fatal(err)
	}
}

func same(t testing.TB, got, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %.300q, wanted %.300q", fmt.Sprint(got), fmt.Sprint(wanted))
	}
}

// expectStored fails the test if what a key holds is not one envelope of a value.
func expectStored(t testing.TB, plain redis.Cmdable, key, value string) {
	t.Helper()
	stored := plain.Get(ctx, key)
	expectOnce(t, good(t, stored.Val(), stored.Err()), value)
}

func expectOnce(t testing.TB, stored, value string) {
	t.Helper()
	if !compression.IsEnvelope(stored) || len(stored) > len(value)/2 {
		t.Fatalf("%d bytes that are not compressed", len(stored))
	}
	codec, err := envelope.New(envelope.Options{})
	ok(t, err)
	read, err := codec.Decode(nil, []byte(stored))
	same(t, string(good(t, read, err)), value)
}

func eachProtocol(t *testing.T, address string, options compression.Options, test func(t *testing.T, made opened)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			made := open(t, address, options, func(settings *redis.Options) { settings.Protocol = protocol })
			ok(t, made.plain.FlushAll(ctx).Err())
			test(t, made)
		})
	}
}

func TestValuesOfStringsAreCompressedAndRestored(t *testing.T) {
	eachProtocol(t, servers.Valkey(t), compression.Options{}, func(t *testing.T, made opened) {
		client := made.client
		ok(t, client.Set(ctx, "set", page(1), time.Minute).Err())
		ok(t, client.Set(ctx, "bytes", []byte(page(2)), 0).Err())
		ok(t, client.SetNX(ctx, "setnx", page(3), time.Minute).Err())
		ok(t, client.Do(ctx, "setex", "setex", 60, page(4)).Err())
		ok(t, client.MSet(ctx, "mset:1", page(5), "mset:2", []byte(page(6))).Err())
		ok(t, client.MSetNX(ctx, "msetnx", page(7)).Err())
		ok(t, client.Do(ctx, "PSETEX", "do", 60_000, page(8)).Err())
		ok(t, client.Do(ctx, []byte("set"), []byte("bytes of all"), []byte(page(9)), "EX", 60).Err())
		ok(t, client.Set(ctx, "marshaled", marshaled{page(10)}, 0).Err())
		for number, key := range []string{"set", "bytes", "setnx", "setex", "mset:1", "mset:2", "msetnx", "do", "bytes of all", "marshaled"} {
			expectStored(t, made.plain, key, page(number+1))
			got := client.Get(ctx, key)
			same(t, good(t, got.Val(), got.Err()), page(number+1))
		}
		same(t, client.MGet(ctx, "set", "none", "bytes").Val(), []any{page(1), nil, page(2)})
		same(t, client.GetEx(ctx, "set", time.Minute).Val(), page(1))
		same(t, client.Do(ctx, "getset", "set", page(11)).Val(), page(1))
		same(t, client.SetArgs(ctx, "set", page(12), redis.SetArgs{Get: true}).Val(), page(11))
		same(t, client.GetDel(ctx, "set").Val(), page(12))
		same(t, client.Do(ctx, "mget", "bytes", "none").Val(), []any{page(2), nil})
		same(t, client.Do(ctx, "SET", "bytes", "short", "GET").Val(), page(2))
		same(t, client.Get(ctx, "none").Err(), redis.Nil)
		same(t, client.Get(ctx, "bytes").Val(), "short")
	})
}

type marshaled struct{ text string }

func (m marshaled) MarshalBinary() ([]byte, error) { return []byte(m.text), nil }

func TestWordsAndKeysAreReadWhateverTheirType(t *testing.T) {
	made := open(t, servers.Valkey(t), compression.Options{})
	one, many := 1, uint16(1)
	for number, count := range []any{
		1, int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1), float32(1), 1.0,
		time.Duration(1), &one, &many, "1", []byte("1"), marshaled{"1"},
	} {
		key := fmt.Sprintf("%d:%T", number, count)
		ok(t, made.client.Do(ctx, "msetex", count, key, page(number), "ex", 60).Err())
		expectStored(t, made.plain, key, page(number))
	}
	ok(t, made.plain.Set(ctx, "7", damaged, 0).Err())
	var undecodable *envelope.UndecodableError
	for _, key := range []any{7, uint8(7), marshaled{"7"}} {
		if err := made.client.Do(ctx, "get", key).Err(); !errors.As(err, &undecodable) || undecodable.Key != "7" {
			t.Errorf("%T: got %v", key, err)
		}
	}
}

func TestNumbersStayNumbers(t *testing.T) {
	made := open(t, servers.Valkey(t), compression.Options{})
	ok(t, made.client.Set(ctx, "counter", 41, 0).Err())
	same(t, made.client.Incr(ctx, "counter").Val(), int64(42))
	same(t, made.client.Get(ctx, "counter").Val(), "42")
	moment := time.Now()
	ok(t, made.client.Set(ctx, "moment", moment, 0).Err())
	read, err := made.client.Get(ctx, "moment").Time()
	if !good(t, read, err).Equal(moment) {
		t.Errorf("got %v", read)
	}
}

func TestValuesOfOtherTypesAreCompressedIfThatIsWanted(t *testing.T) {
	eachProtocol(t, servers.Valkey(t), everything, func(t *testing.T, made opened) {
		client, plain := made.client, made.plain
		ok(t, client.HSet(ctx, "hash", "one", page(1), "two", "short").Err())
		ok(t, client.HSetNX(ctx, "hash", "three", page(3)).Err())
		expectOnce(t, plain.HGet(ctx, "hash", "one").Val(), page(1))
		expectOnce(t, plain.HGet(ctx, "hash", "three").Val(), page(3))
		all := map[string]string{"one": page(1), "two": "short", "three": page(3)}
		same(t, client.HGetAll(ctx, "hash").Val(), all)
		same(t, fieldsOf(client.Do(ctx, "hgetall", "hash").Val()), all)
		same(t, client.HGet(ctx, "hash", "one").Val(), page(1))
		same(t, client.HMGet(ctx, "hash", "one", "none").Val(), []any{page(1), nil})
		values := client.HVals(ctx, "hash").Val()
		slices.Sort(values)
		same(t, values, []string{"short", page(1), page(3)})
		pairs, _ := client.HScan(ctx, "hash", 0, "", 10).Val()
		same(t, inPairs(pairs), all)
		fields, _ := client.HScanNoValues(ctx, "hash", 0, "", 10).Val()
		same(t, len(fields), 3)
		for _, pair := range client.HRandFieldWithValues(ctx, "hash", 3).Val() {
			same(t, pair.Value, all[pair.Key])
		}

		ok(t, client.RPush(ctx, "list", page(1), "short", page(2), page(3), page(4), page(5), page(6)).Err())
		expectOnce(t, plain.LIndex(ctx, "list", 0).Val(), page(1))
		same(t, client.LRange(ctx, "list", 0, 2).Val(), []string{page(1), "short", page(2)})
		same(t, client.LIndex(ctx, "list", 0).Val(), page(1))
		ok(t, client.LSet(ctx, "list", 1, page(7)).Err())
		ok(t, client.LInsertBefore(ctx, "list", "none", page(8)).Err())
		same(t, client.LPop(ctx, "list").Val(), page(1))
		same(t, client.LPopCount(ctx, "list", 2).Val(), []string{page(7), page(2)})
		same(t, client.BLPop(ctx, time.Second, "none", "list").Val(), []string{"list", page(3)})
		key, popped := client.LMPop(ctx, "left", 1, "none", "list").Val()
		same(t, []any{key, popped}, []any{"list", []string{page(4)}})
		same(t, client.LMove(ctx, "list", "other", "left", "right").Val(), page(5))
		same(t, client.Do(ctx, "rpoplpush", "list", "other").Val(), page(6))

		id := client.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []any{"field", page(1), "other", "short"}})
		ok(t, id.Err())
		entry := redis.XMessage{ID: id.Val(), Values: map[string]any{"field": page(1), "other": "short"}}
		expectOnce(t, plain.XRange(ctx, "stream", "-", "+").Val()[0].Values["field"].(string), page(1))
		same(t, client.XRange(ctx, "stream", "-", "+").Val(), []redis.XMessage{entry})
		same(t, client.XRevRange(ctx, "stream", "+", "-").Val(), []redis.XMessage{entry})
		streams := client.XRead(ctx, &redis.XReadArgs{Streams: []string{"stream", "0"}}).Val()
		same(t, streams, []redis.XStream{{Stream: "stream", Messages: []redis.XMessage{entry}}})
		ok(t, client.XGroupCreate(ctx, "stream", "group", "0").Err())
		streams = client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "group", Consumer: "one", Streams: []string{"stream", ">"}}).Val()
		same(t, streams[0].Messages, []redis.XMessage{entry})
		claimed := client.XClaim(ctx, &redis.XClaimArgs{Stream: "stream", Group: "group", Consumer: "two", Messages: []string{entry.ID}})
		same(t, claimed.Val(), []redis.XMessage{entry})
		claimedNow, _ := client.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: "stream", Group: "group", Consumer: "one", Start: "0"}).Val()
		same(t, claimedNow, []redis.XMessage{entry})
	})
}

func inPairs(pairs []string) map[string]string {
	made := map[string]string{}
	for at := 0; at+1 < len(pairs); at += 2 {
		made[pairs[at]] = pairs[at+1]
	}
	return made
}

// fieldsOf are the fields of a hash in a reply to Do, which is a map or an array.
func fieldsOf(reply any) map[string]string {
	pairs := []string{}
	switch reply := reply.(type) {
	case map[any]any:
		for field, value := range reply {
			pairs = append(pairs, field.(string), value.(string))
		}
	case []any:
		for _, each := range reply {
			pairs = append(pairs, each.(string))
		}
	}
	return inPairs(pairs)
}

func TestOtherTypesPassAsTheyAreByDefault(t *testing.T) {
	made := open(t, servers.Valkey(t), compression.Options{})
	ok(t, made.client.HSet(ctx, "hash", "field", page(1)).Err())
	same(t, made.plain.HGet(ctx, "hash", "field").Val(), page(1))
	ok(t, made.client.SAdd(ctx, "members", page(1)).Err())
	same(t, made.plain.SMembers(ctx, "members").Val(), []string{page(1)})
}

func TestPipelinesAndTransactions(t *testing.T) {
	eachProtocol(t, servers.Valkey(t), compression.Options{}, func(t *testing.T, made opened) {
		for name, pipelined := range map[string]func(func(redis.Pipeliner) error) ([]redis.Cmder, error){
			"pipeline": func(fill func(redis.Pipeliner) error) ([]redis.Cmder, error) { return made.client.Pipelined(ctx, fill) },
			"transaction": func(fill func(redis.Pipeliner) error) ([]redis.Cmder, error) {
				return made.client.TxPipelined(ctx, fill)
			},
		} {
			var got *redis.StringCmd
			var many *redis.SliceCmd
			commands, err := pipelined(func(pipe redis.Pipeliner) error {
				pipe.Set(ctx, name, page(1), 0)
				pipe.Incr(ctx, name+":counter")
				got = pipe.Get(ctx, name)
				many = pipe.MGet(ctx, name, "none")
				pipe.Get(ctx, "none")
				return nil
			})
			if !errors.Is(err, redis.Nil) || err != redis.Nil || len(commands) != 5 {
				t.Errorf("%s: %v", name, err)
			}
			same(t, got.Val(), page(1))
			same(t, many.Val(), []any{page(1), nil})
			expectStored(t, made.plain, name, page(1))
		}
	})
}

func TestTransactionsThatAreWrittenOut(t *testing.T) {
	commands := [][]any{
		{"multi"}, {"set", "key", page(1)}, {"get", "key"}, {"incr", "counter"}, {"mget", "key", "none"}, {"hset", "hash", "field", page(2)},
		{"hgetall", "hash"}, {"set", "key", page(3), "get"}, {"exec"},
	}
	eachProtocol(t, servers.Valkey(t), everything, func(t *testing.T, made opened) {
		conn := made.client.Conn()
		defer conn.Close()
		for name, send := range map[string]func() *redis.Cmd{
			"each command a call": func() (last *redis.Cmd) {
				for _, each := range commands {
					last = conn.Do(ctx, each...)
					ok(t, last.Err())
				}
				return last
			},
			"in a pipeline": func() (last *redis.Cmd) {
				_, err := made.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
					pipe.Do(ctx, "get", "before")
					for _, each := range commands {
						last = pipe.Do(ctx, each...)
					}
					return nil
				})
				ok(t, err, redis.Nil)
				return last
			},
		} {
			t.Run(name, func(t *testing.T) {
				ok(t, made.plain.Del(ctx, "key", "counter", "hash").Err())
				reply, err := send().Slice()
				ok(t, err)
				same(t, reply[1], page(1))
				same(t, reply[3], []any{page(1), nil})
				same(t, fieldsOf(reply[5]), map[string]string{"field": page(2)})
				same(t, reply[6], page(1))
				expectStored(t, made.plain, "key", page(3))
			})
		}
		t.Run("with a value that cannot be restored", func(t *testing.T) {
			ok(t, made.plain.Set(ctx, "damaged", damaged, 0).Err())
			ok(t, conn.Do(ctx, "multi").Err())
			ok(t, conn.Do(ctx, "get", "damaged").Err())
			var undecodable *envelope.UndecodableError
			if err := conn.Do(ctx, "exec").Err(); !errors.As(err, &undecodable) || undecodable.Key != "damaged" {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestWatchedTransactions(t *testing.T) {
	made := open(t, servers.Valkey(t), compression.Options{})
	ok(t, made.client.Set(ctx, "key", page(1), 0).Err())
	err := made.client.Watch(ctx, func(tx *redis.Tx) error {
		same(t, tx.Get(ctx, "key").Val(), page(1))
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "key", page(2), 0)
			return nil
		})
		return err
	}, "key")
	ok(t, err)
	expectStored(t, made.plain, "key", page(2))
}

func TestRepliesOfManyValuesAreReadWithoutAllocatingForEach(t *testing.T) {
	made := open(t, servers.Valkey(t), everything)
	const values = 100
	keys := make([]string, values)
	for number := range keys {
		keys[number] = fmt.Sprintf("key:%d", number)
		ok(t, made.plain.Set(ctx, keys[number], "short", 0).Err())
		ok(t, made.plain.RPush(ctx, "list", "short").Err())
	}
	for name, read := range map[string]func(client *redis.Client) error{
		"MGET":   func(client *redis.Client) error { return client.MGet(ctx, keys...).Err() },
		"LRANGE": func(client *redis.Client) error { return client.LRange(ctx, "list", 0, -1).Err() },
	} {
		allocations := func(client *redis.Client) float64 {
			return testing.AllocsPerRun(100, func() { ok(t, read(client)) })
		}
		if more := allocations(made.client) - allocations(made.plain); more > values/2 {
			t.Errorf("%s of %d values: %v allocations more", name, values, more)
		}
	}
}

func TestAReplyWithoutAnEnvelopeIsReadWithoutAllocatingMore(t *testing.T) {
	made := open(t, servers.Valkey(t), everything)
	ok(t, made.plain.Set(ctx, "key", "short", 0).Err())
	// The least of some runs: what goroutines of the clients allocate meanwhile is counted as well.
	allocations := func(client *redis.Client) float64 {
		least := math.Inf(1)
		for range 5 {
			least = min(least, testing.AllocsPerRun(200, func() { ok(t, client.Get(ctx, "key").Err()) }))
		}
		return least
	}
	if more := allocations(made.client) - allocations(made.plain); more > 0 {
		t.Errorf("GET: %v allocations more", more)
	}
}

func TestRefusedCommandsAreNotSent(t *testing.T) {
	made := open(t, servers.Valkey(t), compression.Options{})
	client := made.client
	ok(t, client.Set(ctx, "key", page(1), 0).Err())
	for _, err := range []error{
		client.Append(ctx, "key", "more").Err(),
		client.StrLen(ctx, "key").Err(),
		client.Do(ctx, "getrange", "key", 0, 10).Err(),
		client.Do(ctx, "SET", "key", "other", "IFEQ", "value").Err(),
		client.GetToBuffer(ctx, "key", make([]byte, 10_000)).Err(),
	} {
		expectRefused(t, err)
	}
	expectStored(t, made.plain, "key", page(1))

	var got *redis.StringCmd
	var refused *redis.IntCmd
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "pipeline", page(2), 0)
		refused = pipe.Append(ctx, "pipeline", "more")
		got = pipe.Get(ctx, "pipeline")
		return nil
	})
	expectRefused(t, err)
	expectRefused(t, refused.Err())
	same(t, got.Val(), page(2))

	_, err = client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "transaction", page(3), 0)
		pipe.Append(ctx, "transaction", "more")
		got = pipe.Get(ctx, "transaction")
		return nil
	})
	expectRefused(t, err)
	if got.Err() == nil {
		t.Error("a command of the transaction has no error")
	}
	same(t, made.plain.Exists(ctx, "transaction").Val(), int64(0))
}

func TestOfAWrittenOutTransactionWithARefusedCommandNothingIsRun(t *testing.T) {
	eachProtocol(t, servers.Valkey(t), compression.Options{}, func(t *testing.T, made opened) {
		conn := made.client.Conn()
		defer conn.Close()
		ok(t, conn.Do(ctx, "multi").Err())
		ok(t, conn.Set(ctx, "key", page(1), 0).Err())
		expectRefused(t, conn.Append(ctx, "key", "more").Err())
		ok(t, conn.Set(ctx, "key", page(2), 0).Err())
		expectRefused(t, conn.Do(ctx, "exec").Err())
		same(t, made.plain.Exists(ctx, "key").Val(), int64(0))
		same(t, conn.Do(ctx, "Exec").Err().Error(), "ERR EXEC without MULTI")

		// A refusal before a transaction, or in one that was ended, or on another connection, does not count.
		other := made.client.Conn()
		defer other.Close()
		ok(t, other.Do(ctx, "multi").Err())
		expectRefused(t, other.Append(ctx, "key", "more").Err())
		ok(t, conn.Do(ctx, "MULTI").Err())
		expectRefused(t, conn.Append(ctx, "key", "more").Err())
		ok(t, conn.Do(ctx, "discard").Err())
		expectRefused(t, conn.Append(ctx, "key", "more").Err())
		ok(t, conn.Do(ctx, "multi").Err())
		ok(t, conn.Set(ctx, "key", page(3), 0).Err())
		ok(t, conn.Do(ctx, "exec").Err())
		expectStored(t, made.plain, "key", page(3))
		expectRefused(t, other.Do(ctx, "exec").Err())
	})
}

// denying is a circuit breaker that lets nothing through while it is open.
type denying struct{ isOpen bool }

func (d *denying) Allow() error {
	if d.isOpen {
		return errors.New("denied")
	}
	return nil
}

func (d *denying) ReportResult(error) {}

func TestATransactionThatCouldNotBeDiscardedIsNotRunLater(t *testing.T) {
	var limiter denying
	made := open(t, servers.Valkey(t), compression.Options{}, func(settings *redis.Options) { settings.Limiter = &limiter })
	conn := made.client.Conn()
	defer conn.Close()
	ok(t, conn.Do(ctx, "multi").Err())
	ok(t, conn.Set(ctx, "key", page(1), 0).Err())
	expectRefused(t, conn.Append(ctx, "key", "more").Err())
	limiter.isOpen = true
	expectRefused(t, conn.Do(ctx, "exec").Err())
	limiter.isOpen = false
	expectRefused(t, conn.Do(ctx, "exec").Err())
	same(t, made.plain.Exists(ctx, "key").Val(), int64(0))
}

func expectRefused(t *testing.T, err error) {
	t.Helper()
	var refused *compression.RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

func TestWhatTheCallerGaveIsNeverChanged(t *testing.T) {
	made := open(t, servers.Valkey(t), compression.Options{})
	value := []byte(page(1))
	arguments := []any{"set", "key", value}
	command := made.client.Do(ctx, arguments...)
	ok(t, command.Err())
	same(t, arguments, []any{"set", "key", []byte(page(1))})
	same(t, command.Args(), arguments)
	expectStored(t, made.plain, "key", page(1))
}

func TestAValueThatCannotBeReadIsAnErrorOfItsCommand(t *testing.T) {
	address := servers.Valkey(t)
	made := open(t, address, compression.Options{})
	ok(t, made.plain.MSet(ctx, "damaged", damaged, "good", "value").Err())
	err := made.client.Get(ctx, "damaged").Err()
	var undecodable *envelope.UndecodableError
	if !errors.As(err, &undecodable) || undecodable.Kind != envelope.Corrupt || undecodable.Key != "damaged" {
		t.Errorf("got %v", err)
	}
	if err := made.client.MGet(ctx, "good", "damaged").Err(); !errors.As(err, &undecodable) || undecodable.Key != "damaged" {
		t.Errorf("got %v", err)
	}
	var before, after *redis.StringCmd
	_, err = made.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		before = pipe.Get(ctx, "damaged")
		after = pipe.Get(ctx, "good")
		return nil
	})
	if !errors.As(err, &undecodable) || !errors.As(before.Err(), &undecodable) {
		t.Errorf("got %v and %v", err, before.Err())
	}
	same(t, good(t, after.Val(), after.Err()), "value")

	raw := open(t, address, compression.Options{OnUndecodable: envelope.Raw})
	same(t, raw.client.Get(ctx, "damaged").Val(), damaged)
}

func TestAClientSideCacheHoldsCompressedValuesThatAreRestoredOnEachHit(t *testing.T) {
	options := everything
	options.ExistingEnvelopes = envelope.Wrap
	made := open(t, servers.Valkey(t), options, func(settings *redis.Options) {
		settings.Protocol, settings.ClientSideCacheConfig = 3, &redis.ClientSideCacheConfig{}
	})
	// A value that is an envelope itself: what was restored before it was kept would be restored once more.
	inner := string(encoded(t, page(1)))
	ok(t, made.client.Set(ctx, "key", inner, 0).Err())
	ok(t, made.client.HSet(ctx, "hash", "field", inner).Err())
	for name, read := range map[string]func() any{
		"GET":     func() any { return made.client.Get(ctx, "key").Val() },
		"MGET":    func() any { return made.client.MGet(ctx, "key").Val()[0] },
		"HGET":    func() any { return made.client.HGet(ctx, "hash", "field").Val() },
		"HGETALL": func() any { return made.client.HGetAll(ctx, "hash").Val()["field"] },
		"HMGET":   func() any { return made.client.HMGet(ctx, "hash", "field").Val()[0] },
	} {
		t.Run(name, func(t *testing.T) {
			same(t, read(), inner)
			before := made.client.CSCStats().Hits
			for range 3 {
				same(t, read(), inner)
			}
			same(t, made.client.CSCStats().Hits-before, uint64(3))
		})
	}
}

func TestStatisticsCountWhatPassed(t *testing.T) {
	made := open(t, servers.Valkey(t), compression.Options{Backend: envelope.LZ4})
	ok(t, made.client.Set(ctx, "key", page(1), 0).Err())
	made.client.Get(ctx, "key")
	counted := made.compressor.Statistics()
	same(t, []uint64{counted.LZ4.EncodedValues, counted.LZ4.DecodedValues}, []uint64{1, 1})
}

func TestAnotherKindOfClientIsRefused(t *testing.T) {
	if _, err := goredis.Compress(struct{ redis.UniversalClient }{}, compression.Options{}); err == nil {
		t.Error("it was taken")
	}
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	var refused *envelope.OptionError
	for _, options := range []compression.Options{
		{CompressionLevel: 99}, {ValueTypes: []compression.ValueType{"sets"}},
		{DictionaryRefresh: time.Millisecond},
	} {
		if _, err := goredis.Compress(client, options); !errors.As(err, &refused) {
			t.Errorf("%+v: got %v", options, err)
		}
	}
}

func TestAClientThatIsNotThereIsRefused(t *testing.T) {
	for _, client := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		if _, err := goredis.Compress(client, compression.Options{}); err == nil || !strings.Contains(err.Error(), "no client") {
			t.Errorf("%T: got %v", client, err)
		}
	}
}

func TestTheExamplesRun(t *testing.T) {
	address = servers.Valkey(t)
	ExampleCompress()
	ExampleCompress_cluster()
	ExampleCompress_readers()
	ExampleCompress_dictionaries()
	expectStored(t, open(t, address, compression.Options{}).plain, "page:1", "<html>"+strings.Repeat("<p>hello</p>", 500))
}
