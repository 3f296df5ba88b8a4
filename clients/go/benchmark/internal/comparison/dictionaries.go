//go:build unix

package comparison

import (
	"context"
	"errors"
	"fmt"
	"time"

	"snugly.dev/go/benchmark/internal/training"
	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
)

const (
	// trainedSeed is that of the records that dictionaries are trained from: others than those that are measured.
	trainedSeed = 3
	// trained is how many of them there are.
	trained = 5_000
	// longestPut is how long a client may take to put its dictionary beside the data.
	longestPut = 10 * time.Second
)

// GoRedisWithDictionary has a client of go-redis for each backend that writes with a dictionary, which snugly trains
// from other records; none where SNUGLY_BIN does not name snugly.
func GoRedisWithDictionary(settings Settings) ([]Way, error) {
	dictionary, err := train(settings)
	if err != nil || dictionary == nil {
		return nil, err
	}
	return goRedisWith(settings.Address, dictionary)
}

func goRedisWith(address string, dictionary *envelope.Dictionary) ([]Way, error) {
	var ways []Way
	for _, backend := range []envelope.Backend{envelope.LZ4, envelope.Zstd} {
		client := newGoRedis(address)
		compressor, err := goredis.Compress(client, compression.Options{Backend: backend, Dictionary: dictionary})
		if err != nil {
			return nil, err
		}
		for started := time.Now(); compressor.Dictionaries().For(key(0)) == nil; time.Sleep(time.Millisecond) {
			if time.Since(started) > longestPut {
				return nil, errors.New("the dictionary was not put beside the data")
			}
		}
		ways = append(ways, Way{Name{"go-redis", string(backend) + " + dict"}, goRedisClient{client}})
	}
	return ways, nil
}

// train is the dictionary of other records, which are in the server for as long as that takes.
func train(settings Settings) (*envelope.Dictionary, error) {
	ctx, client := context.Background(), newGoRedis(settings.Address)
	defer func() { _ = client.Close() }()
	const prefix = "benchmark:trained:"
	var names []string
	pipeline := client.Pipeline()
	for number, record := range records(trainedSeed, trained, settings.ValueBytes) {
		names = append(names, fmt.Sprint(prefix, number))
		pipeline.Set(ctx, names[number], record, 0)
	}
	if _, err := pipeline.Exec(ctx); err != nil {
		return nil, err
	}
	defer client.Del(ctx, names...)
	return training.Dictionary(settings.Address, prefix+"*", trained)
}
