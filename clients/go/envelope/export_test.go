package envelope

// XXH32 is for tests that make envelopes by hand.
func XXH32(input []byte) uint32 { return xxh32(input) }
