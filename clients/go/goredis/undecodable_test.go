package goredis_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
)

func missing() compression.Options {
	options := everything
	options.OnUndecodable = envelope.Miss
	return options
}

func TestWhatCannotBeReadIsMissedAsWhatIsNotThere(t *testing.T) {
	eachProtocol(t, servers.Valkey(t), missing(), func(t *testing.T, made opened) {
		client := made.client
		ok(t, made.plain.MSet(ctx, "good", "one", "bad", damaged).Err())
		ok(t, made.plain.HSet(ctx, "hash", "bad", damaged, "good", "one").Err())
		ok(t, made.plain.RPush(ctx, "list", "one", damaged, "two").Err())
		ok(t, made.plain.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []string{"bad", damaged, "good", "one"}}).Err())
		for name, err := range map[string]error{
			"GET":         client.Get(ctx, "bad").Err(),
			"HGET":        client.HGet(ctx, "hash", "bad").Err(),
			"LINDEX":      client.LIndex(ctx, "list", 1).Err(),
			"Do":          client.Do(ctx, "get", "bad").Err(),
			"SET and GET": client.SetArgs(ctx, "bad", damaged, redis.SetArgs{Get: true, KeepTTL: true}).Err(),
		} {
			if !errors.Is(err, redis.Nil) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ok(t, made.plain.Set(ctx, "bad", damaged, 0).Err())
		same(t, client.Get(ctx, "bad").Val(), "")
		same(t, client.MGet(ctx, "bad", "good", "nothing").Val(), []any{nil, "one", nil})
		same(t, client.HMGet(ctx, "hash", "bad", "good").Val(), []any{nil, "one"})
		same(t, client.HGetAll(ctx, "hash").Val(), map[string]string{"good": "one"})
		same(t, client.HVals(ctx, "hash").Val(), []string{"one"})
		same(t, client.LRange(ctx, "list", 0, -1).Val(), []string{"one", "two"})
		same(t, client.HRandFieldWithValues(ctx, "hash", 2).Val(), []redis.KeyValue{{Key: "good", Value: "one"}})
		page, _ := client.HScan(ctx, "hash", 0, "", 10).Val()
		same(t, page, []string{"good", "one"})
		same(t, client.XRange(ctx, "stream", "-", "+").Val()[0].Values, map[string]any{"good": "one"})
		_, popped, err := client.LMPop(ctx, "left", 3, "list").Result()
		same(t, good(t, popped, err), []string{"one", "two"})
	})
}

func TestInAPipelineOnlyWhatCannotBeReadIsMissed(t *testing.T) {
	made := open(t, servers.Valkey(t), missing())
	ok(t, made.plain.MSet(ctx, "good", "one", "bad", damaged).Err())
	for name, run := range map[string]func(func(redis.Pipeliner) error) ([]redis.Cmder, error){
		"a pipeline": func(fill func(redis.Pipeliner) error) ([]redis.Cmder, error) { return made.client.Pipelined(ctx, fill) },
		"a transaction": func(fill func(redis.Pipeliner) error) ([]redis.Cmder, error) {
			return made.client.TxPipelined(ctx, fill)
		},
	} {
		var bad, fine *redis.StringCmd
		_, err := run(func(pipeline redis.Pipeliner) error {
			bad, fine = pipeline.Get(ctx, "bad"), pipeline.Get(ctx, "good")
			return nil
		})
		if !errors.Is(err, redis.Nil) || !errors.Is(bad.Err(), redis.Nil) || fine.Val() != "one" || fine.Err() != nil {
			t.Errorf("%s: %v, %v, %v", name, err, bad, fine)
		}
	}
}

func TestAValueWhoseDictionaryIsNotThereIsMissed(t *testing.T) {
	made := open(t, servers.Valkey(t), missing())
	store(t, made.plain, "bad", 1, unpublished(t, 1))
	store(t, made.plain, "worse", 2, unpublished(t, 2))
	ok(t, made.plain.Set(ctx, "good", "one", 0).Err())
	if err := made.client.Get(ctx, "bad").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("got %v", err)
	}
	same(t, made.client.MGet(ctx, "bad", "good", "worse").Val(), []any{nil, "one", nil})
	counted := made.compressor.Statistics()
	same(t, []uint64{counted.DecodeFailures, counted.DictionaryMisses}, []uint64{3, 3})
}

func TestMissesAreCountedAndOneIsLogged(t *testing.T) {
	var logged lockedBuffer
	options := missing()
	options.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	made := open(t, servers.Valkey(t), options)
	ok(t, made.plain.MSet(ctx, "good", "one", "bad", damaged, "worse", damaged).Err())
	ok(t, made.client.Get(ctx, "bad").Err(), redis.Nil)
	same(t, made.client.MGet(ctx, "good", "worse").Val(), []any{"one", nil})
	_, err := made.client.Pipelined(ctx, func(pipeline redis.Pipeliner) error {
		pipeline.Get(ctx, "worse")
		pipeline.Get(ctx, "bad")
		return nil
	})
	ok(t, err, redis.Nil)
	same(t, made.compressor.Statistics().DecodeFailures, uint64(4))
	if text := logged.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, `at key \"bad\"`) {
		t.Errorf("%q was logged", text)
	}
}

func TestWhatOneReplyIsRestoredToIsBounded(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	options := compression.Options{MaxReplyBytes: 25_000}
	made := open(t, servers.Valkey(t), options)
	ok(t, made.client.MSet(ctx, "1", long, "2", long, "3", long).Err())
	isTooLarge := func(what string, err error) {
		t.Helper()
		undecodable := (*envelope.UndecodableError)(nil)
		if !errors.As(err, &undecodable) || undecodable.Kind != envelope.TooLarge || !strings.Contains(undecodable.Reason, "MaxReplyBytes") {
			t.Errorf("%s: %v", what, err)
		}
	}
	same(t, made.client.MGet(ctx, "1", "2").Val(), []any{long, long})
	isTooLarge("MGET", made.client.MGet(ctx, "1", "2", "3").Err())
	for name, pipelined := range map[string]func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error){
		"a pipeline": made.client.Pipelined, "a transaction": made.client.TxPipelined,
	} {
		var gets []*redis.StringCmd
		_, err := pipelined(ctx, func(pipeline redis.Pipeliner) error {
			for _, key := range []string{"1", "2", "3"} {
				gets = append(gets, pipeline.Get(ctx, key))
			}
			return nil
		})
		isTooLarge(name, err)
		isTooLarge("the third of "+name, gets[2].Err())
		same(t, gets[1].Val(), long)
	}
	t.Run("and each reply is one of its own", func(t *testing.T) {
		for range 5 {
			same(t, made.client.Get(ctx, "1").Val(), long)
		}
	})
	t.Run("unless it is not to be", func(t *testing.T) {
		unlimited := open(t, made.plain.Options().Addr, compression.Options{MaxReplyBytes: compression.Unlimited})
		ok(t, unlimited.client.MGet(ctx, "1", "2", "3").Err())
	})
}
