package compression

import (
	"context"
	"iter"
	"sync"
	"unsafe"

	"snugly.dev/go/envelope"
)

// mostKept is the largest buffer that is kept between values, in bytes.
const mostKept = 1 << 20

// scratch has buffers for envelopes that are being made: what is sent is a copy of the right size.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Encode hands the envelope of a value to give, after which it is gone. It returns false, and gives nothing, if the value
// is to be sent as it is.
func (c *Compressor) Encode(key string, value []byte, give func(envelope []byte)) bool {
	buffer := scratch.Get().(*[]byte)
	stored, isEncoded := c.codec.AppendEnvelope((*buffer)[:0], key, value)
	if isEncoded {
		give(stored)
	}
	if cap(stored) <= mostKept {
		*buffer = stored
		scratch.Put(buffer)
	}
	return isEncoded
}

// Restore returns the value of what was stored at a key: the same text if it is no envelope. It returns an
// *envelope.UndecodableError for an envelope that cannot be read.
func (c *Compressor) Restore(ctx context.Context, key, stored string) (string, error) {
	// The codec changes nothing in what it is given.
	value, isRestored, err := c.codec.AppendValue(ctx, nil, key, bytesOf(stored))
	if err != nil || !isRestored {
		return stored, err
	}
	// Nobody else has these bytes.
	return unsafe.String(unsafe.SliceData(value), len(value)), nil
}

// IsDictionaryMissing tells whether a value that was stored needs a dictionary that is not at hand.
func (c *Compressor) IsDictionaryMissing(stored string) bool {
	id := envelope.Needs(bytesOf(stored))
	return id != 0 && c.keeper.AtHand(id) == nil
}

// Gather fetches the dictionaries that some values of one reply need and that are not at hand, all at once: restored one
// after another, the values would wait for each dictionary in turn. It takes as long as ctx allows at most.
func (c *Compressor) Gather(ctx context.Context, stored iter.Seq[string]) {
	var missing []uint32
	for each := range stored {
		if c.IsDictionaryMissing(each) {
			missing = append(missing, envelope.Needs(bytesOf(each)))
		}
	}
	// Restoring does the same for one, and has the error.
	if len(missing) > 1 {
		_ = c.keeper.FetchAll(ctx, missing...)
	}
}

// IsEnvelope tells whether something stored may be an envelope.
func IsEnvelope(stored string) bool { return envelope.Is(bytesOf(stored)) }

func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
