package compression

import (
	"context"
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

// IsEnvelope tells whether something stored may be an envelope.
func IsEnvelope(stored string) bool { return envelope.Is(bytesOf(stored)) }

func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
