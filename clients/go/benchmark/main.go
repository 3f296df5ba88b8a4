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
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
)

// values is how many values and keys there are.
const values = 256

// valueBytes is about the length of a value.
const valueBytes = 1440

var ctx = context.Background()

// way is one way of using the client.
type way struct {
	name    string
	backend envelope.Backend // Empty for the client without the hook.
	client  *redis.Client
}

// operation is what is done again and again.
type operation struct {
	name string
	do   func(client *redis.Client, key, value string) error
}

var operations = []operation{
	{"SET", func(client *redis.Client, key, value string) error { return client.Set(ctx, key, value, 0).Err() }},
	{"GET", func(client *redis.Client, key, _ string) error { return client.Get(ctx, key).Err() }},
}

func main() {
	address := flag.String("address", "", "the server to measure with; one of its own without this")
	seconds := flag.Float64("seconds", 1, "how long each way is measured in a round")
	rounds := flag.Int("rounds", 7, "how many rounds there are")
	profile := flag.String("cpuprofile", "", "where a profile of the processor's time is written")
	only := flag.String("only", "", "the one way that is measured")
	flag.Parse()
	if *profile != "" {
		file, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(file))
		defer pprof.StopCPUProfile()
	}
	if *address == "" {
		started, stop, isHere := servers.ForExamples()
		if !isHere {
			log.Fatal("there is no valkey-server: set SNUGLY_VALKEY_SERVER, or give an address")
		}
		defer stop()
		*address = started
	}
	ways := open(*address, *only)
	fmt.Printf("%-5s %10s  %-6s %12s %8s %10s\n", "", "goroutines", "hook", "operations/s", "of bare", "CPU")
	for _, operation := range operations {
		for _, goroutines := range []int{1, 64} {
			measure(ways, operation, goroutines, *rounds, time.Duration(*seconds*float64(time.Second)))
		}
	}
}

func open(address, only string) []way {
	ways := []way{{name: "bare"}, {name: "off", backend: envelope.None}, {name: "lz4", backend: envelope.LZ4}, {name: "zstd", backend: envelope.Zstd}}
	ways = slices.DeleteFunc(ways, func(each way) bool { return only != "" && each.name != only })
	for at := range ways {
		ways[at].client = redis.NewClient(&redis.Options{Addr: address, PoolSize: 64})
		if ways[at].backend != "" {
			_, err := goredis.Compress(ways[at].client, compression.Options{Backend: ways[at].backend})
			check(err)
		}
	}
	return ways
}

// measure prints what each way does in a second, and what that is of what the first does.
func measure(ways []way, operation operation, goroutines, rounds int, duration time.Duration) {
	rates, costs := make([][]float64, len(ways)), make([][]float64, len(ways))
	for round := range rounds {
		for turn := range ways {
			at := (turn + round) % len(ways)
			rate, cost := run(ways[at], operation, goroutines, duration)
			rates[at], costs[at] = append(rates[at], rate), append(costs[at], cost)
		}
	}
	for at, each := range ways {
		ratios := make([]float64, rounds)
		for round := range ratios {
			ratios[round] = rates[at][round] / rates[0][round]
		}
		fmt.Printf("%-5s %10d  %-6s %12.0f %8.3f %7.1f us\n", operation.name, goroutines, each.name, median(rates[at]), median(ratios), median(costs[at]))
	}
}

// run gives how many operations there are in a second, and the processor time of one in microseconds. What is read has
// been written in the same way.
func run(way way, operation operation, goroutines int, duration time.Duration) (rate, cost float64) {
	content := records()
	for at := range content {
		check(way.client.Set(ctx, key(at), content[at], 0).Err())
	}
	counts := make([]int, goroutines)
	var all sync.WaitGroup
	started, before := time.Now(), processorTime()
	for worker := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for number := worker; time.Since(started) < duration; number++ {
				check(operation.do(way.client, key(number%values), content[number%values]))
				counts[worker]++
			}
		}()
	}
	all.Wait()
	elapsed, spent, sum := time.Since(started), processorTime()-before, 0
	for _, count := range counts {
		sum += count
	}
	return float64(sum) / elapsed.Seconds(), float64(spent.Microseconds()) / float64(sum)
}

// processorTime is what this process has taken.
func processorTime() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var keys = sync.OnceValue(func() []string {
	made := make([]string, values)
	for number := range made {
		made[number] = fmt.Sprintf("benchmark:%d", number)
	}
	return made
})

func key(number int) string { return keys()[number] }

// records are JSON as applications cache it: the same fields in all of them, with other words and numbers.
var records = sync.OnceValue(func() []string {
	random := rand.New(rand.NewPCG(1, 2))
	syllables := strings.Fields("an ber con del en fra gor hal in jo ka lum mar nor ost per qui ras sol ter un vel wi xa yon zel")
	word := func() string {
		made := ""
		for range 1 + random.IntN(4) {
			made += syllables[random.IntN(len(syllables))]
		}
		return made
	}
	made := make([]string, values)
	for number := range made {
		var record strings.Builder
		fmt.Fprintf(&record, `{"id":%d,"created_at":"2026-%02d-%02dT%02d:%02d:00Z","customer":{"name":"%s %s","email":"%s@%s.example"},"items":[`,
			random.IntN(1e9), 1+random.IntN(12), 1+random.IntN(28), random.IntN(24), random.IntN(60), word(), word(), word(), word())
		for record.Len() < valueBytes-130 {
			fmt.Fprintf(&record, `{"sku":"%08x","title":"%s %s %s","quantity":%d,"price":%d.%02d,"currency":"EUR"},`,
				random.Uint32(), word(), word(), word(), 1+random.IntN(9), random.IntN(500), random.IntN(100))
		}
		fmt.Fprintf(&record, `null],"status":"%s","total":%d}`, word(), random.IntN(100_000))
		made[number] = record.String()
	}
	return made
})

func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[len(sorted)/2]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
