package codecs

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/benchmark/internal/training"
	"snugly.dev/go/benchmark/layout"
	"snugly.dev/go/cache"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

// trainedOn is a dictionary of so many records in a server. It returns nil where there is no valkey-server, or no snugly.
func trainedOn(codec cache.Codec, samples int) (*envelope.Dictionary, error) {
	address, stop, isHere := servers.ForExamples()
	if !isHere {
		return nil, nil
	}
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer func() { _ = client.Close() }()
	records, err := cache.New[layout.Layout](goredis.Backend(client), cache.Options{Prefix: "record:", Codec: codec, TTL: cache.NoExpiry})
	if err != nil {
		return nil, err
	}
	entries := map[string]layout.Layout{}
	for number := firstTrained; number < firstTrained+samples; number++ {
		entries[fmt.Sprint(number)] = layout.Record(number)
	}
	if err := records.SetMany(context.Background(), entries); err != nil {
		return nil, err
	}
	return training.Dictionary(address, "record:*", samples)
}
