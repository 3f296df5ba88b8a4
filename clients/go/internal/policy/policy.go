// Package policy says whether it is worth an attempt to compress a value.
//
// Short values are compressed without further thought as long as that succeeds. Once it fails for values of some length
// (to the power of two), those are looked at first, as long values always are, and attempts on those that look like the
// failed ones back off exponentially. They never stop: a random block that repeats itself looks random and is
// compressible, and what a cache holds changes.
//
// The package knows bytes and what came of attempts, and nothing of what compresses.
package policy

import (
	"math/bits"
	"sync/atomic"
)

// Policy is the memory of what has been worth compressing with one backend at one level. The zero value remembers
// nothing. It is for any number of goroutines: one update may overtake another, which costs an attempt more or less.
type Policy struct {
	plain, withDictionary [lengths]class
}

// lengths are those of values, to the power of two, up to the longest that is compressed.
const lengths = 33

// class is the memory of values of similar length.
type class struct {
	// suspicion is the number of successes until values are no longer looked at before an attempt.
	suspicion atomic.Uint32
	backoffs  [spreads]backoff
}

const (
	// suspicionStep is by how much each failure raises suspicion, up to mostSuspicion.
	suspicionStep = 4
	mostSuspicion = 32
	// alwaysLookedAt is the length in bytes from which on a look costs less than a hundredth of an attempt, and every value
	// gets one.
	alwaysLookedAt = 16 << 10
)

// Reason says why a value is not worth an attempt.
type Reason uint8

const (
	// None is for a value that is to be tried.
	None Reason = iota
	// Compressed is for a value that is compressed already, or looks random.
	Compressed
	// NoGain is for a value that looks like those that did not shrink.
	NoGain
)

// Attempt is one that the policy allows, to be reported when it has been made.
type Attempt struct {
	class *class
	// spread is that of the value, and backoff that of such values; nil if it was not looked at.
	spread  spread
	backoff *backoff
	// doubtful says that a failure is likely.
	doubtful bool
}

// IsDoubtful tells whether a failure is likely, so that a fast level should go first.
func (a Attempt) IsDoubtful() bool { return a.doubtful }

// Consider gives an attempt to compress a value, with a dictionary or without, or says why it is not to be made. A nil
// Policy allows every attempt.
func (p *Policy) Consider(value []byte, hasDictionary bool) (Attempt, Reason) {
	if p == nil {
		return Attempt{}, None
	}
	classes := &p.plain
	if hasDictionary {
		classes = &p.withDictionary
	}
	class := &classes[bits.Len32(uint32(len(value)))]
	isMagic := hasMagic(value)
	if class.suspicion.Load() == 0 && !isMagic && len(value) < alwaysLookedAt {
		return Attempt{class: class}, None
	}
	spread := spreadOf(value)
	if isMagic && spread != skewed {
		return Attempt{}, Compressed
	}
	backoff := &class.backoffs[spread]
	doubtful := spread == even && backoff.hasFailed()
	if !backoff.isDue(spread) {
		if spread == even {
			return Attempt{}, Compressed
		}
		return Attempt{}, NoGain
	}
	return Attempt{class, spread, backoff, doubtful}, None
}

// Report notes whether the attempt has made the value smaller.
func (a Attempt) Report(gained bool) {
	if a.class == nil {
		return
	}
	a.class.report(gained)
	if a.backoff != nil {
		a.backoff.report(a.spread, gained)
	}
}

func (c *class) report(gained bool) {
	suspicion := c.suspicion.Load()
	switch {
	case !gained:
		c.suspicion.CompareAndSwap(suspicion, min(suspicion+suspicionStep, mostSuspicion))
	case suspicion > 0:
		c.suspicion.CompareAndSwap(suspicion, suspicion-1)
	}
}
