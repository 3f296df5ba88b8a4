package envelope

// ForTrials makes a codec that works as this one does, but tries every value and counts for itself: for values that are
// encoded only to see what comes of it.
func (c *Codec) ForTrials() *Codec {
	return &Codec{options: c.options, writer: c.writer, fallbacks: c.fallbacks, counted: new(Statistics)}
}
