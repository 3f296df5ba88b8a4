package policy

// A cheap look at a value: how evenly are its bytes distributed?
//
// The statistic is the collision probability of a sample: the chance that two of its bytes are equal, which is 1/256 for
// random bytes, four times that for base64 and fifteen times for JSON. It says nothing about repeated sequences, so it
// can only ever advise to try seldom, never to stop trying.

// Bytes are looked at in short runs, spread over the value: 128 bytes of them, or 256 where the value is long. At 128
// random bytes stay clear of the limit by four standard deviations, and base64 by six.
const (
	runLen     = 16
	runs       = 8
	runsOfLong = 16
	long       = 4 << 10
)

// spread is the distribution of a value's bytes.
type spread uint8

const (
	// even is as random, encrypted or well compressed bytes are.
	even spread = iota
	// mixed is unevenly enough to gain by entropy coding alone: base64, packed numbers.
	mixed
	// skewed is as in text.
	skewed
	spreads
)

func spreadOf(value []byte) spread {
	excess, sampled := excessOf(value)
	switch {
	// A sample's result scatters around 100, and more so when it is small.
	case excess <= 130+6_000/max(sampled, 1):
		return even
	case excess <= 800:
		return mixed
	}
	return skewed
}

// excessOf gives the collision probability in percent of that of random bytes, and the number of bytes sampled.
func excessOf(value []byte) (excess, sampled int) {
	count := runs
	if len(value) >= long {
		count = runsOfLong
	}
	var sample sample
	if len(value) <= count*runLen {
		sample.add(value)
	} else {
		stride := (len(value) - runLen) / (count - 1)
		for run := range count {
			sample.add(value[run*stride:][:runLen])
		}
	}
	pairs := sample.len * (sample.len - 1) / 2
	return sample.collisions * 256 * 100 / max(pairs, 1), sample.len
}

type sample struct {
	seen       [256]uint16
	collisions int
	len        int
}

func (s *sample) add(bytes []byte) {
	for _, each := range bytes {
		s.collisions += int(s.seen[each])
		s.seen[each]++
	}
	s.len += len(bytes)
}
