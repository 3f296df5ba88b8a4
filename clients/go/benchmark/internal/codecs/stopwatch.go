package codecs

import (
	"slices"
	"testing"
	"time"
)

// measured is what one run of a candidate costs.
type measured struct {
	nanoseconds float64
	allocations float64
}

// measure runs candidates in turns, so that a machine whose speed changes is the same for all, and gives the median of the
// rounds for each.
func measure(how Settings, candidates ...func()) []measured {
	times := make([][]float64, len(candidates))
	results := make([]measured, len(candidates))
	for at, candidate := range candidates {
		results[at].allocations = testing.AllocsPerRun(how.Rounds, candidate)
	}
	for range how.Rounds {
		for at, candidate := range candidates {
			times[at] = append(times[at], once(how.Round, candidate))
		}
	}
	for at := range results {
		slices.Sort(times[at])
		results[at].nanoseconds = times[at][len(times[at])/2]
	}
	return results
}

// once is the time of one run, from as many as take about so long.
func once(atLeast time.Duration, candidate func()) float64 {
	for count := 1; ; count *= 4 {
		started := time.Now()
		for range count {
			candidate()
		}
		if taken := time.Since(started); taken >= atLeast/4 {
			return float64(taken) / float64(count)
		}
	}
}
