package cache

import "sync/atomic"

// Statistics are the counts of a cache since it was made.
type Statistics struct {
	// Hits counts values that were found, fresh or stale, by Get, GetMany and GetOrLoad.
	Hits uint64
	// StaleHits counts those of Hits that GetOrLoad served stale.
	StaleHits uint64
	// NegativeHits counts keys of which the cache remembered that they do not exist.
	NegativeHits uint64
	// Misses counts keys without an entry.
	Misses uint64
	// Sets counts values stored by Set, SetFor and SetMany.
	Sets uint64
	// Loads counts calls of loaders, and LoadFailures those that returned an error other than ErrNotFound, or panicked.
	Loads, LoadFailures uint64
	// LoadsJoined counts callers of GetOrLoad who waited for a load that another had begun.
	LoadsJoined uint64
	// LoadsOvertaken counts loads whose value was not stored, as a Set or Delete of its key came in between.
	LoadsOvertaken uint64
	// RevalidationsSkipped counts stale hits that began no load, as Options.MaxRevalidations ran already.
	RevalidationsSkipped uint64
	// EncodeFailures counts values without a form in the codec.
	EncodeFailures uint64
	// DecodeFailures counts entries that could not be read.
	DecodeFailures uint64
	// BackendFailures counts errors of the backend that GetOrLoad did not return, as it had or loaded a value.
	BackendFailures uint64
}

type counters struct {
	hits, staleHits, negativeHits, misses, sets              atomic.Uint64
	loads, loadFailures, loadsJoined, loadsOvertaken         atomic.Uint64
	skipped, encodeFailures, decodeFailures, backendFailures atomic.Uint64
}

func (c *counters) snapshot() Statistics {
	return Statistics{
		Hits:                 c.hits.Load(),
		StaleHits:            c.staleHits.Load(),
		NegativeHits:         c.negativeHits.Load(),
		Misses:               c.misses.Load(),
		Sets:                 c.sets.Load(),
		Loads:                c.loads.Load(),
		LoadFailures:         c.loadFailures.Load(),
		LoadsJoined:          c.loadsJoined.Load(),
		LoadsOvertaken:       c.loadsOvertaken.Load(),
		RevalidationsSkipped: c.skipped.Load(),
		EncodeFailures:       c.encodeFailures.Load(),
		DecodeFailures:       c.decodeFailures.Load(),
		BackendFailures:      c.backendFailures.Load(),
	}
}

// readsForEachWrite is at least 1: those who write are often not those who read.
func (c *counters) readsForEachWrite() float64 {
	writes := c.sets.Load() + c.loads.Load()
	return max(1, float64(c.hits.Load())/float64(max(1, writes)))
}
