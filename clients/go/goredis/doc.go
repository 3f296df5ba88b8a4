// Package goredis compresses values in clients of go-redis (github.com/redis/go-redis/v9).
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	_, err := goredis.Compress(client, compression.Options{})
//
// From then on the values of SET, MSET and the like are compressed where they leave, and restored where GET, MGET and the
// like return, in pipelines, transactions and WATCH, too; on one server, through a Sentinel, on a cluster, on a Ring.
// Commands that would work on compressed bytes fail with a *compression.RefusedError before they are sent.
//
// Replies are restored in whatever type of go-redis is made for what they hold, and in types that embed it; raw ones, and
// those that are read as something else (MGET as a map, XREAD as a MapStringSliceInterfaceCmd), stay as they are stored.
//
// The package knows go-redis: how its commands hold arguments and results, and where its hooks run. What becomes of which
// command is in package compression.
package goredis
