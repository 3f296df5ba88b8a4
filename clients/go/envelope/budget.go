package envelope

import "math"

// Budget is the memory for the values of one reply together: a few bytes of envelopes can stand for as much as a process
// has memory. It is for one goroutine.
type Budget struct {
	// Left is the number of bytes that the next values may take.
	Left int
}

// Unlimited is a budget that no reply uses up.
func Unlimited() Budget { return Budget{math.MaxInt} }

// take notes that a value was restored, which was within the budget.
func (b *Budget) take(length int) {
	if b != nil {
		b.Left -= length
	}
}

// bound is the most bytes of a value, and the option that says so.
type bound struct {
	limit        int
	says, option string
}

// bound is that of the next value of a reply, or of one alone.
func (c *Codec) bound(of *Budget) bound {
	if of != nil && of.Left < c.options.MaxDecompressedSize {
		return bound{of.Left, "the %d bytes that are left for its reply", "MaxReplyBytes"}
	}
	return bound{c.options.MaxDecompressedSize, "the limit of %d", "MaxDecompressedSize"}
}
