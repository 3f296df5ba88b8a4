package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
)

// made makes a command of one type, as with any other.
func made[T redis.Cmder](command func(ctx context.Context, words ...any) T) func(words ...any) redis.Cmder {
	return func(words ...any) redis.Cmder { return command(ctx, words...) }
}

// ofTypes has the types of go-redis that can hold the replies to commands.
var ofTypes = []struct {
	commands []string
	types    []func(words ...any) redis.Cmder
}{
	{
		[]string{"get string", "getdel string", "getex string", "hget hash field", "lindex list 0", "lpop list"},
		[]func(...any) redis.Cmder{made(redis.NewCmd), made(redis.NewStringCmd)},
	},
	{
		[]string{"set string other get"},
		[]func(...any) redis.Cmder{made(redis.NewCmd), made(redis.NewStringCmd), made(redis.NewStatusCmd)},
	},
	{
		[]string{"mget string other", "hmget hash field none", "hvals hash", "lrange list 0 -1", "lpop list 2", "blpop list 1"},
		[]func(...any) redis.Cmder{made(redis.NewCmd), made(redis.NewSliceCmd), made(redis.NewStringSliceCmd), made(redis.NewJSONSliceCmd)},
	},
	{
		[]string{"mget string other", "hvals hash", "lrange list 0 -1", "lpop list 2"},
		[]func(...any) redis.Cmder{made(redis.NewStringStructMapCmd)},
	},
	{
		[]string{"hgetall hash", "hrandfield hash 1 withvalues"},
		[]func(...any) redis.Cmder{
			made(redis.NewCmd), made(redis.NewSliceCmd), made(redis.NewStringSliceCmd), made(redis.NewStringSliceSliceCmd),
			made(redis.NewMapStringStringCmd), made(redis.NewMapStringInterfaceCmd), made(redis.NewMapMapStringInterfaceCmd),
			made(redis.NewMapStringStringSliceCmd), made(redis.NewMapStringInterfaceSliceCmd), made(redis.NewKeyValueSliceCmd),
		},
	},
	{
		[]string{"hscan hash 0"},
		[]func(...any) redis.Cmder{
			made(redis.NewCmd), made(redis.NewSliceCmd), made(redis.NewMapStringInterfaceCmd),
			func(words ...any) redis.Cmder { return redis.NewScanCmd(ctx, nil, words...) },
		},
	},
	{
		[]string{"lmpop 2 none list left count 2"},
		[]func(...any) redis.Cmder{made(redis.NewCmd), made(redis.NewSliceCmd), made(redis.NewKeyValuesCmd), made(redis.NewMapStringInterfaceCmd)},
	},
	{
		[]string{"xrange stream - +", "xclaim stream group consumer 0 1-1"},
		[]func(...any) redis.Cmder{
			made(redis.NewCmd), made(redis.NewSliceCmd), made(redis.NewXMessageSliceCmd), made(redis.NewMapMapStringInterfaceCmd),
			made(redis.NewMapStringInterfaceSliceCmd),
		},
	},
	{
		[]string{"xread streams stream 0", "xreadgroup group group consumer streams stream >"},
		[]func(...any) redis.Cmder{
			made(redis.NewCmd), made(redis.NewSliceCmd), made(redis.NewXStreamSliceCmd), made(redis.NewMapStringInterfaceCmd),
			made(redis.NewMapMapStringInterfaceCmd), made(redis.NewMapStringInterfaceSliceCmd),
		},
	},
	{
		[]string{"xautoclaim stream group consumer 0 0"},
		[]func(...any) redis.Cmder{
			made(redis.NewCmd), made(redis.NewSliceCmd), made(redis.NewXAutoClaimCmd), made(redis.NewXAutoClaimWithDeletedCmd),
		},
	},
}

// valuesOfEachType are at keys that the commands name.
func valuesOfEachType(pipe redis.Pipeliner) error {
	pipe.FlushDB(ctx)
	pipe.MSet(ctx, "string", page(1), "other", page(2))
	pipe.HSet(ctx, "hash", "field", page(1))
	pipe.RPush(ctx, "list", page(1), page(2), page(3))
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "1-1", Values: []any{"field", page(1), "other", "short"}})
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "1-2", Values: []any{"field", page(2)}})
	pipe.XGroupCreate(ctx, "stream", "group", "0")
	return nil
}

// replyOf is what a command has got from a client that has just written the values.
func replyOf(t *testing.T, client *redis.Client, command redis.Cmder) (string, error) {
	t.Helper()
	_, err := client.Pipelined(ctx, valuesOfEachType)
	ok(t, err)
	if name := command.Name(); name == "xclaim" || name == "xautoclaim" {
		read := redis.XReadGroupArgs{Group: "group", Consumer: "first", Streams: []string{"stream", ">"}}
		ok(t, client.XReadGroup(ctx, &read).Err())
	}
	err = client.Process(ctx, command)
	var reply []any
	for _, value := range reflect.ValueOf(command).MethodByName("Val").Call(nil) {
		reply = append(reply, value.Interface())
	}
	return fmt.Sprintf("%q", reply), err
}

func TestRepliesAreRestoredInEachTypeThatFitsThem(t *testing.T) {
	eachProtocol(t, servers.Valkey(t), everything, func(t *testing.T, opened opened) {
		for _, row := range ofTypes {
			for _, text := range row.commands {
				var words []any
				for _, word := range strings.Fields(text) {
					words = append(words, word)
				}
				fits := 0
				for _, of := range row.types {
					// The reply to a client that has written without compression.
					command := of(words...)
					want, err := replyOf(t, opened.plain, command)
					if err != nil {
						continue // The type is for the other protocol.
					}
					fits++
					got, err := replyOf(t, opened.client, of(words...))
					ok(t, err)
					if got != want {
						t.Errorf("%s as %T: got %.200s, wanted %.200s", text, command, got, want)
					}
				}
				if fits == 0 {
					t.Errorf("%s fits none of the types", text)
				}
			}
		}
	})
}

// Commands of types that an application makes.
type (
	embedding       struct{ *redis.Cmd }
	embeddingValue  struct{ redis.StringCmd }
	deep            struct{ hidden }
	hidden          struct{ *embeddingValue }
	embeddingAnyCmd struct {
		more error
		redis.Cmder
	}
)

// Val hides that of the command that is embedded.
func (e embedding) Val() string { return e.Cmd.Val().(string) }

func TestCommandsOfAnApplicationsOwnTypesAreThoseThatTheyEmbed(t *testing.T) {
	opened := open(t, servers.Valkey(t), compression.Options{})
	client := opened.client
	get := func() *redis.StringCmd { return redis.NewStringCmd(ctx, "get", "key") }
	for name, run := range map[string]func(command redis.Cmder) error{
		"a single command": func(command redis.Cmder) error { return client.Process(ctx, command) },
		"a pipeline": func(command redis.Cmder) error {
			_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Process(ctx, command) })
			return err
		},
		"a transaction": func(command redis.Cmder) error {
			_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Process(ctx, command) })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ok(t, run(embedding{redis.NewCmd(ctx, "set", "key", page(1))}))
			expectStored(t, opened.plain, "key", page(1))
			first, second, third, fourth := embedding{redis.NewCmd(ctx, "get", "key")}, &embeddingValue{StringCmd: *get()}, deep{hidden{&embeddingValue{StringCmd: *get()}}}, get()
			for _, command := range []redis.Cmder{first, second, third, embeddingAnyCmd{nil, fourth}} {
				ok(t, run(command))
			}
			for _, got := range []string{first.Val(), second.Val(), third.Val(), fourth.Val()} {
				same(t, got, page(1))
			}
			set := embedding{redis.NewCmd(ctx, "set", "key", page(2), "get")}
			ok(t, run(set))
			same(t, set.Val(), page(1))
			expectRefused(t, run(&embeddingAnyCmd{Cmder: redis.NewZeroCopyStringCmd(ctx, make([]byte, 10_000), "get", "key")}))

			ok(t, opened.plain.Set(ctx, "key", damaged, 0).Err())
			var undecodable *envelope.UndecodableError
			if err := run(first); !errors.As(err, &undecodable) || !errors.As(first.Err(), &undecodable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWrittenOutTransactionsOfAnyTypesAreRestored(t *testing.T) {
	opened := open(t, servers.Valkey(t), compression.Options{})
	conn := opened.client.Conn()
	defer conn.Close()
	for name, run := range map[string]func(commands []redis.Cmder) error{
		"each command a call": func(commands []redis.Cmder) error {
			for _, each := range commands {
				if err := conn.Process(ctx, each); err != nil {
					return err
				}
			}
			return nil
		},
		"in a pipeline": func(commands []redis.Cmder) error {
			_, err := opened.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.BatchProcess(ctx, commands...) })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			exec := redis.NewSliceCmd(ctx, "exec")
			ok(t, run([]redis.Cmder{
				embedding{redis.NewCmd(ctx, "multi")}, embedding{redis.NewCmd(ctx, "set", "key", page(1))},
				embedding{redis.NewCmd(ctx, "get", "key")}, &embeddingAnyCmd{Cmder: exec},
			}))
			same(t, exec.Val(), []any{"OK", page(1)})
		})
	}
}
