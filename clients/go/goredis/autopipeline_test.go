package goredis_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

// autoPipelining is what clients of one server and of a cluster have in common here.
type autoPipelining interface {
	redis.UniversalClient
	AutoPipeline() (*redis.AutoPipeliner, error)
	AsyncAutoPipeline() (*redis.AutoPipeliner, error)
}

// eachKind opens a client of one server, or of a cluster.
var eachKind = map[string]func(t *testing.T) autoPipelining{
	"one server": func(t *testing.T) autoPipelining { return redis.NewClient(&redis.Options{Addr: servers.Valkey(t)}) },
	"a cluster": func(t *testing.T) autoPipelining {
		servers.Slow(t, servers.ClusterTakesLong)
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: servers.NewCluster(t, 3).Addresses})
	},
}

func TestAutomaticPipelinesAreCompressed(t *testing.T) {
	for name, open := range eachKind {
		t.Run(name, func(t *testing.T) {
			client := open(t)
			compressor, err := goredis.Compress(client, compression.Options{})
			ok(t, err)
			t.Cleanup(func() { client.Close(); compressor.Close() })
			for face, open := range map[string]func() (*redis.AutoPipeliner, error){"blocking": client.AutoPipeline, "deferred": client.AsyncAutoPipeline} {
				t.Run(face, func(t *testing.T) {
					pipeliner, err := open()
					ok(t, err)
					before := compressor.Statistics()
					var all sync.WaitGroup
					for worker := range 8 {
						all.Add(1)
						go func() {
							defer all.Done()
							for round := range 20 {
								key := fmt.Sprintf("%s:%d:%d", face, worker, round)
								same(t, pipeliner.Set(ctx, key, page(round), 0).Err(), nil)
								expectRefused(t, pipeliner.Append(ctx, key, "more").Err())
								got := pipeliner.Get(ctx, key)
								same(t, got.Err(), nil)
								same(t, got.Val(), page(round))
							}
						}()
					}
					all.Wait()
					after := compressor.Statistics()
					same(t, after.Zstd.EncodedValues-before.Zstd.EncodedValues, uint64(160))
					same(t, after.Zstd.DecodedValues-before.Zstd.DecodedValues, uint64(160))
				})
			}
		})
	}
}

// TestPipelinesThatAreSentBeforeHooksSeeThemAreRefused: commands that are refused would be executed.
func TestPipelinesThatAreSentBeforeHooksSeeThemAreRefused(t *testing.T) {
	fullDuplex := redis.AutoPipelineOptions{}
	field := reflect.ValueOf(&fullDuplex).Elem().FieldByName("FullDuplex")
	if !field.IsValid() {
		t.Skip("this version of go-redis has none")
	}
	field.SetBool(true)
	for name, client := range map[string]redis.UniversalClient{
		"one server": redis.NewClient(&redis.Options{AutoPipelineOptions: &fullDuplex}),
		"a sentinel": redis.NewFailoverClient(&redis.FailoverOptions{AutoPipelineOptions: &fullDuplex}),
		"a cluster":  redis.NewClusterClient(&redis.ClusterOptions{AutoPipelineOptions: &fullDuplex}),
		"universal":  redis.NewUniversalClient(&redis.UniversalOptions{AutoPipelineOptions: &fullDuplex}),
	} {
		t.Run(name, func(t *testing.T) {
			defer client.Close()
			_, err := goredis.Compress(client, compression.Options{})
			var refused *envelope.OptionError
			if !errors.As(err, &refused) || refused.Option != "AutoPipelineOptions.FullDuplex" {
				t.Errorf("got %v", err)
			}
		})
	}
}
