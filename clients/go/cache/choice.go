package cache

import (
	"sync"
	"sync/atomic"
)

const (
	// Number of first values that are measured, before one in measuredLater.
	measuredFirst = 16
	measuredLater = 1024
	// The fastest of some rounds counts: the first may find nothing in the processor's caches.
	rounds = 2
	// With each value that is measured, what was measured before loses this share: data changes.
	fading = 1.0 / 64
	// A codec must cost less than this share of what the present one does, or noise of the clock would change it.
	worthChanging = 0.95
)

// choice is the knowledge that Auto has of the codecs, from values that were written.
type choice struct {
	candidates []Codec
	price      float64 // Nanoseconds for a stored byte.
	chosen     atomic.Uint32
	written    atomic.Uint64
	mu         sync.Mutex // For whoever measures; held from isDue to measured.
	costs      [len(codecs)]float64
}

func newChoice(goal Goal, hasMsgp bool) *choice {
	made := &choice{price: prices[goal]}
	for codec := JSON; int(codec) < len(codecs); codec++ {
		if hasMsgp || !codecs[codec].isMsgp {
			made.candidates = append(made.candidates, codec)
		}
	}
	// Until something is measured, what is the best for most.
	made.chosen.Store(uint32(made.candidates[len(made.candidates)-1]))
	return made
}

func (c *choice) now() Codec { return Codec(c.chosen.Load()) }

// isDue tells whether the caller is to measure the value that it writes, and to call measured then.
func (c *choice) isDue() bool {
	written := c.written.Add(1)
	return (written <= measuredFirst || written%measuredLater == 0) && c.mu.TryLock()
}

// cost is that of a value with a codec: its bytes, and the time to write it once and read it as often as values are
// read for each write.
func (c *choice) cost(stored int, encoding, decoding, readsForEachWrite float64) float64 {
	return float64(stored)*c.price + encoding + decoding*readsForEachWrite
}

// measured adds what a value costs with each codec, or nil if it has no form in one of them, chooses, and lets others
// measure.
func (c *choice) measured(costs *[len(codecs)]float64) {
	defer c.mu.Unlock()
	if costs == nil {
		return
	}
	for codec := range c.costs {
		c.costs[codec] += costs[codec] - c.costs[codec]*fading
	}
	best := c.now()
	for _, codec := range c.candidates {
		if c.costs[codec] < c.costs[best] && c.costs[codec] < worthChanging*c.costs[c.now()] {
			best = codec
		}
	}
	c.chosen.Store(uint32(best))
}
