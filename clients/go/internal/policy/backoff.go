package policy

import "sync/atomic"

// backoff is the restraint in trying values that look alike. It takes no lock: who comes second leaves its update out.
type backoff struct {
	// state is failures, the attempts that have failed since the last one that succeeded, above the 16 bits of skip, the
	// values that are still to be skipped before the next attempt.
	state atomic.Uint32
}

const mostFailures = 255

func stateOf(failures, skip uint32) uint32 { return failures<<16 | skip }

// hasFailed tells whether the last attempt has failed.
func (b *backoff) hasFailed() bool { return b.state.Load()>>16 > 0 }

// isDue tells whether to try the next value.
func (b *backoff) isDue(spread spread) bool {
	state := b.state.Load()
	failures, skip := state>>16, state&0xffff
	if skip > 0 {
		b.state.CompareAndSwap(state, stateOf(failures, skip-1))
		return false
	}
	// Of many goroutines one makes the attempt that is due, and until it succeeds the others skip as if it had failed.
	again := spread.skip(failures)
	return again == 0 || b.state.CompareAndSwap(state, stateOf(failures, again))
}

// report notes what came of an attempt. A success ends the back-off whatever others do meanwhile.
func (b *backoff) report(spread spread, gained bool) {
	switch state := b.state.Load(); {
	case !gained:
		failures := min(state>>16+1, mostFailures)
		b.state.CompareAndSwap(state, stateOf(failures, spread.skip(failures)))
	case state != 0:
		b.state.Store(0)
	}
}

// patience is the number of failures in a row that are taken for chance, where values do not look random.
const patience = 8

// skip is the number of values that are skipped after so many failures in a row.
func (s spread) skip(failures uint32) uint32 {
	switch {
	case failures == 0:
		return 0
	case s == even:
		// 4, 16, 64, then always 256: less than 1 % of the cost of trying each time.
		return 1 << min(2*failures, 8)
	case failures <= patience:
		return 0
	case s == mixed:
		// These mostly compress, or belong to a mixture of which some do: patient, and at worst one attempt in 64 (base64
		// and LZ4, say) or in 16.
		return 1<<min(failures-patience, 6) - 1
	}
	return 1<<min(failures-patience, 4) - 1
}
