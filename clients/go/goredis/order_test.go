package goredis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/goredis"
)

// seeing is a hook of an application, which looks at the values of SET and GET.
type seeing struct {
	set, got     string
	isKnownToSet bool // SET was a command of go-redis's own type.
}

func (s *seeing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *seeing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		s.see(command)
		return err
	}
}

func (s *seeing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, batch []redis.Cmder) error {
		err := next(ctx, batch)
		for _, command := range batch {
			s.see(command)
		}
		return err
	}
}

func (s *seeing) see(command redis.Cmder) {
	switch command.Name() {
	case "set":
		_, s.isKnownToSet = command.(*redis.StatusCmd)
		switch value := command.Args()[2].(type) {
		case string:
			s.set = value
		case []byte:
			s.set = string(value)
		}
	case "get":
		s.got = command.(*redis.StringCmd).Val()
	}
}

func TestHooksThatAreAddedBeforeSeeWhatTheApplicationDoes(t *testing.T) {
	for name, open := range eachKind {
		t.Run(name, func(t *testing.T) {
			client := open(t)
			var before, after seeing
			client.AddHook(&before)
			compressor, err := goredis.Compress(client, compression.Options{})
			ok(t, err)
			t.Cleanup(func() { client.Close(); compressor.Close() })
			client.AddHook(&after)
			for way, exchange := range map[string]func(){
				"single commands": func() {
					ok(t, client.Set(ctx, "key", page(1), 0).Err())
					ok(t, client.Get(ctx, "key").Err())
				},
				"a pipeline": func() {
					_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
						pipe.Set(ctx, "key", page(1), 0)
						pipe.Get(ctx, "key")
						return nil
					})
					ok(t, err)
				},
			} {
				t.Run(way, func(t *testing.T) {
					before, after = seeing{}, seeing{}
					exchange()
					same(t, before, seeing{page(1), page(1), true})
					if name == "a cluster" {
						// The hooks of a cluster's client are before those of its nodes, whenever they are added.
						same(t, after, before)
						return
					}
					expectOnce(t, after.set, page(1))
					expectOnce(t, after.got, page(1))
					same(t, after.isKnownToSet, false)
				})
			}
		})
	}
}
