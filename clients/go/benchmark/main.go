//go:build unix

// Command benchmark measures what compression costs in a client of go-redis: operations a second with the hook, by those
// without it in the same run, and the processor time that the client takes for one.
//
//	go run ./benchmark [-address localhost:6379] [-seconds 1] [-rounds 7]
//
// Without an address it starts the valkey-server that SNUGLY_VALKEY_SERVER names.
//
// Each round measures every way for so many seconds, in another order; the ratio is the median of those of the rounds. The
// server's keys beginning with benchmark: are overwritten.
package main

import (
	"log"

	"snugly.dev/go/benchmark/internal/comparison"
)

func main() {
	if err := comparison.Run(comparison.GoRedis, comparison.OfBare); err != nil {
		log.Fatal(err)
	}
}
