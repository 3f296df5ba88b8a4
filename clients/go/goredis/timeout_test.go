package goredis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

func TestTheTimeForAReplyIsTheReadTimeoutOfTheClient(t *testing.T) {
	// No server is asked.
	kinds := map[string]func(timeout time.Duration) redis.UniversalClient{
		"one server": func(timeout time.Duration) redis.UniversalClient {
			return redis.NewClient(&redis.Options{ReadTimeout: timeout})
		},
		"a cluster": func(timeout time.Duration) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: timeout})
		},
		"a ring": func(timeout time.Duration) redis.UniversalClient {
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "localhost:1"}, ReadTimeout: timeout})
		},
	}
	standard := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { standard.Close() })
	for name, open := range kinds {
		for timeout, wanted := range map[time.Duration]time.Duration{0: standard.Options().ReadTimeout, 7 * time.Second: 7 * time.Second, -1: 0, -2: 0} {
			client := open(timeout)
			t.Cleanup(func() { client.Close() })
			if got := goredis.ReplyTimeout(client); got != wanted {
				t.Errorf("%s with %v: %v", name, timeout, got)
			}
		}
	}
}

func TestADictionaryThatIsNotThereIsWaitedForNoLongerThanAReply(t *testing.T) {
	servers.Slow(t, "it waits for a timeout of the client")
	// Nobody sees the end of a round.
	made := open(t, servers.Valkey(t), compression.Options{DictionaryRefresh: 24 * time.Hour}, func(settings *redis.Options) {
		settings.ReadTimeout = time.Second
	})
	missing := []*envelope.Dictionary{unpublished(t, 1), unpublished(t, 2)}
	store(t, made.plain, "key:1", 1, missing[0])
	store(t, made.plain, "key:2", 2, missing[1])
	nameInCatalogue(t, made.plain, missing...)
	undecodable := (*envelope.UndecodableError)(nil)
	if err := made.client.MGet(ctx, "key:1", "key:2").Err(); !errors.As(err, &undecodable) || undecodable.Kind != envelope.DictionaryMissing {
		t.Errorf("got %v", err)
	}
}
