//go:build unix

package comparison

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// operation is what is done again and again.
type operation struct {
	name string
	do   func(ctx context.Context, client Client, key, value string) error
}

var operations = []operation{
	{"SET", func(ctx context.Context, client Client, key, value string) error { return client.Set(ctx, key, value) }},
	{"GET", func(ctx context.Context, client Client, key, _ string) error {
		_, err := client.Get(ctx, key)
		return err
	}},
}

// result is what one way has done, with an entry for each round.
type result struct {
	rates []float64 // Operations a second.
	costs []float64 // Processor time of the client for an operation, in microseconds.
	// stored is how long a value in the server is, in bytes, on average.
	stored float64
}

// measurer measures ways with one server.
type measurer struct {
	rounds   int
	duration time.Duration
	values   []string
	server   *redis.Client // Knows nothing of compression.
}

// measuredSeed is that of the records that are measured.
const measuredSeed = 1

func newMeasurer(settings Settings) *measurer {
	return &measurer{
		settings.Rounds, settings.Round, records(measuredSeed, values, settings.ValueBytes), newGoRedis(settings.Address),
	}
}

func (m *measurer) close() { _ = m.server.Close() }

// measure runs all ways in each round, in another order, so that a machine whose speed changes is the same for all.
func (m *measurer) measure(ctx context.Context, ways []Way, operation operation, goroutines int) ([]result, error) {
	results := make([]result, len(ways))
	for round := range m.rounds {
		for turn := range ways {
			at := (turn + round) % len(ways)
			if err := m.run(ctx, ways[at].Client, operation, goroutines, &results[at]); err != nil {
				return nil, fmt.Errorf("%v, %s: %w", ways[at], operation.name, err)
			}
		}
	}
	return results, nil
}

// run adds a round to a result, in which each goroutine does at least one operation. What it reads has been written, read
// and compared in the same way.
func (m *measurer) run(ctx context.Context, client Client, operation operation, goroutines int, into *result) error {
	stored, err := m.prepare(ctx, client)
	if err != nil {
		return err
	}
	counts, errs := make([]int, goroutines), make([]error, goroutines)
	var all sync.WaitGroup
	started, before := time.Now(), processorTime()
	for worker := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for number, isOver := worker, false; !isOver; number++ {
				errs[worker] = operation.do(ctx, client, key(number%values), m.values[number%values])
				counts[worker]++
				isOver = errs[worker] != nil || time.Since(started) >= m.duration
			}
		}()
	}
	all.Wait()
	elapsed, spent, sum := time.Since(started), processorTime()-before, 0
	for _, count := range counts {
		sum += count
	}
	into.rates = append(into.rates, float64(sum)/elapsed.Seconds())
	into.costs = append(into.costs, float64(spent.Microseconds())/float64(sum))
	into.stored = stored
	return errors.Join(errs...)
}

// prepare writes all values, compares what is read with them, and returns how long they are in the server, on average.
func (m *measurer) prepare(ctx context.Context, client Client) (stored float64, err error) {
	pipeline := m.server.Pipeline()
	for at, record := range m.values {
		if err := client.Set(ctx, key(at), record); err != nil {
			return 0, err
		}
		read, err := client.Get(ctx, key(at))
		if err != nil {
			return 0, err
		}
		if read != record {
			return 0, fmt.Errorf("%s: %d bytes were read that are not the %d that were written", key(at), len(read), len(record))
		}
		pipeline.StrLen(ctx, key(at))
	}
	lengths, err := pipeline.Exec(ctx)
	if err != nil {
		return 0, err
	}
	for _, length := range lengths {
		stored += float64(length.(*redis.IntCmd).Val())
	}
	return stored / values, nil
}

// processorTime is what this process has taken, threads of other languages included.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // Its arguments are right.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
