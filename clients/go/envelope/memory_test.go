package envelope_test

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"snugly.dev/go/envelope"
)

// allocated is how many bytes something allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// withCores has so many for the time of a test. A window of its own makes it the first to use an effort.
func withCores(t *testing.T, cores int) {
	before := runtime.GOMAXPROCS(cores)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestTheFirstValueTakesTheMemoryOfOneContextWhateverTheCores(t *testing.T) {
	withCores(t, 64)
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	for name, options := range map[string]envelope.Options{
		"without a dictionary": {Window: 1 << 19},
		"with a dictionary":    {Dictionaries: envelope.Only(dictionary)},
	} {
		tool := codec(t, options)
		if taken := allocated(func() { tool.Encode(nil, page) }); taken > 2<<20 {
			t.Errorf("%s: %d bytes", name, taken)
		}
	}
}

func TestCodecsOfTheSameEffortShareTheirContexts(t *testing.T) {
	// Level 2 stands for the same as level 3.
	codec(t, envelope.Options{Window: 1 << 18}).Encode(nil, page)
	taken := allocated(func() {
		for range 100 {
			codec(t, envelope.Options{Window: 1 << 18, CompressionLevel: 2}).Encode(nil, page)
		}
	})
	if taken > 2<<20 {
		t.Errorf("%d bytes for 100 codecs", taken)
	}
}

func TestMoreGoroutinesThanContextsTakeTurns(t *testing.T) {
	withCores(t, 2)
	tool := codec(t, envelope.Options{Window: 1 << 17})
	var all sync.WaitGroup
	taken := allocated(func() {
		for range 200 {
			all.Add(1)
			go func() {
				defer all.Done()
				stored := tool.Encode(nil, page)
				if value, err := tool.Decode(nil, stored); err != nil || !bytes.Equal(value, page) {
					t.Errorf("got %d bytes and %v", len(value), err)
				}
			}()
		}
		all.Wait()
	})
	if taken > 8<<20 {
		t.Errorf("%d bytes", taken)
	}
}
