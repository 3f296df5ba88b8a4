package goredis

import (
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/catalogue"
)

// ReplyTimeout is the time that dictionaries are waited for with a client at most.
func ReplyTimeout(client redis.UniversalClient) time.Duration {
	kind, _ := kindOf(client)
	return catalogue.ReplyTimeout(kind.server)
}
