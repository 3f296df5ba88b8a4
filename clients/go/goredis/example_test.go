package goredis_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
)

// address is that of the server of the examples; a test sets it and runs them.
var address = "localhost:6379"

func ExampleCompress() {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	compressor, err := goredis.Compress(client, compression.Options{
		ExistingEnvelopes: envelope.Wrap, // for values that end users make
	})
	if err != nil {
		panic(err)
	}
	defer compressor.Close()

	ctx := context.Background()
	page := "<html>" + strings.Repeat("<p>hello</p>", 500)
	if err := client.Set(ctx, "page:1", page, time.Minute).Err(); err != nil {
		panic(err)
	}
	value, err := client.Get(ctx, "page:1").Result()
	fmt.Println(value == page, err)

	counted := compressor.Statistics()
	fmt.Println(counted.Zstd.EncodedBytesIn, "bytes took", counted.Zstd.EncodedBytesOut)
}

func ExampleCompress_cluster() {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}})
	defer cluster.Close()
	compressor, err := goredis.Compress(cluster, compression.Options{
		Backend:           envelope.LZ4,
		ExistingEnvelopes: envelope.Wrap,
	})
	if err != nil {
		panic(err)
	}
	defer compressor.Close()
}

func ExampleCompress_exclude() {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	compressor, err := goredis.Compress(client, compression.Options{Exclude: []string{"lock:*", "token:*"}})
	if err != nil {
		panic(err)
	}
	defer compressor.Close()
}

func ExampleCompress_readers() {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	compressor, err := goredis.Compress(client, compression.Options{Backend: envelope.None})
	if err != nil {
		panic(err)
	}
	defer compressor.Close()
}

func ExampleCompress_dictionaries() {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	compressor, err := goredis.Compress(client, compression.Options{UseCatalogue: true, DictionaryExclude: []string{"session:*"}})
	if err != nil {
		panic(err)
	}
	defer compressor.Close()
}
