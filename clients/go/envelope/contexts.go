package envelope

import (
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstdCompressors are those of one dictionary, or of none: one for each effort, which all codecs share, since each of its
// contexts takes memory for good.
type zstdCompressors struct {
	made sync.Map // From effort to *zstdCompressor.
}

// with gives what writes with an effort and a dictionary, nil for none: always the same one.
func (c *zstdCompressors) with(use effort, dictionary []byte) (*zstdCompressor, error) {
	row := rowOf(use.level)
	// All levels of a row are the same.
	use.level = row.from
	if made, ok := c.made.Load(use); ok {
		return made.(*zstdCompressor), nil
	}
	made, err := newZstdCompressor(row, use, dictionary)
	if err != nil {
		return nil, err
	}
	kept, _ := c.made.LoadOrStore(use, made)
	return kept.(*zstdCompressor), nil
}

// contexts are the encoders of one effort, each for one value at a time. They are made as they are needed, so that there
// are as many as values were ever encoded at once.
type contexts struct {
	options []zstd.EOption
	turns   chan struct{} // Has room for as many contexts as there may be.
	mutex   sync.Mutex
	idle    []*zstd.Encoder
}

func newContexts(most int, options ...zstd.EOption) *contexts {
	// The library makes all contexts of an encoder at its first value, so each encoder has one.
	options = append(slices.Clip(options), zstd.WithEncoderConcurrency(1))
	return &contexts{options: options, turns: make(chan struct{}, min(runtime.GOMAXPROCS(0), most))}
}

// take waits until there may be another context. Whoever takes one leaves it.
func (c *contexts) take() (*zstd.Encoder, error) {
	c.turns <- struct{}{}
	if used := c.lastUsed(); used != nil {
		return used, nil
	}
	made, err := zstd.NewWriter(nil, c.options...)
	if err != nil {
		<-c.turns
	}
	return made, err
}

// lastUsed is the context that was left last, which the processor's caches know best; nil if all are taken.
func (c *contexts) lastUsed() *zstd.Encoder {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	last := len(c.idle) - 1
	used := c.idle[last]
	c.idle = c.idle[:last]
	return used
}

func (c *contexts) leave(used *zstd.Encoder) {
	c.mutex.Lock()
	c.idle = append(c.idle, used)
	c.mutex.Unlock()
	<-c.turns
}
