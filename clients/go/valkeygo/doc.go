// Package valkeygo compresses values in clients of valkey-go (github.com/valkey-io/valkey-go).
//
//	inner, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{"localhost:6379"}})
//	client, err := valkeygo.Compress(inner, compression.Options{})
//
// The client that comes back is a valkey.Client, to be used in the place of the other. The values of SET, MSET and the
// like are compressed where they leave, and restored where GET, MGET and the like return: with Do, DoMulti, DoCache,
// DoMultiCache, on dedicated clients, in transactions, on single nodes and clusters. Commands that would work on compressed
// bytes fail with a *compression.RefusedError before they are sent. A client-side cache holds compressed values.
//
// The package knows valkey-go: how its commands hold arguments and its results hold replies. What becomes of which command
// is in package compression.
package valkeygo
