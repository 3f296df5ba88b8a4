package cache

import (
	"bytes"
	"context"
	"sync"
	"time"

	"snugly.dev/go/envelope"
)

// coder turns values into what is stored, and back.
type coder[T any] struct {
	form     form[T]
	envelope *envelope.Codec
	codec    Codec
	choice   *choice         // Of Auto, else nil.
	trials   *envelope.Codec // As envelope, for what Auto only measures.
}

// buffers are for what is not stored: values before they are compressed, and envelopes before their length is known.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Buffers that have grown longer are left to the garbage collector.
const mostPooled = 1 << 20

func release(buffer *[]byte, used []byte) {
	if cap(used) <= mostPooled {
		*buffer = used[:0]
		buffers.Put(buffer)
	}
}

// now is the codec that new values are written with.
func (c *coder[T]) now() Codec {
	if c.choice != nil {
		return c.choice.now()
	}
	return c.codec
}

// encode gives what is to be stored at a key of the server, in memory that is nobody else's.
func (c *coder[T]) encode(at string, value *T, plainJSON bool, readsForEachWrite float64) ([]byte, error) {
	if plainJSON {
		return c.encodeAs(JSON, at, value)
	}
	// What compression would do to the value of a key without says nothing of the others.
	if c.choice != nil && !c.envelope.Excludes(at) && c.choice.isDue() {
		c.measure(at, value, readsForEachWrite)
	}
	return c.encodeAs(c.now(), at, value)
}

func (c *coder[T]) encodeAs(codec Codec, at string, value *T) ([]byte, error) {
	row := codecs[codec]
	if !row.compresses {
		stored, err := c.form.append(nil, value, row.isMsgp)
		return stored, encodeError(at, err)
	}
	buffer := buffers.Get().(*[]byte)
	plain, err := c.form.append((*buffer)[:0], value, row.isMsgp)
	if err != nil {
		return nil, encodeError(at, err)
	}
	defer func() { release(buffer, plain) }()
	// An envelope is made in room for the whole value, most of which it does not take.
	room := buffers.Get().(*[]byte)
	enveloped, isEncoded := c.envelope.AppendEnvelope((*room)[:0], at, plain)
	defer func() { release(room, enveloped) }()
	if !isEncoded {
		return bytes.Clone(plain), nil
	}
	return bytes.Clone(enveloped), nil
}

func encodeError(at string, err error) error {
	if err == nil {
		return nil
	}
	return &EncodeError{at, err}
}

// decode gives the value that is stored at a key of the server, whatever has written it.
func (c *coder[T]) decode(ctx context.Context, at string, stored []byte) (value T, err error) {
	return c.decodeFound(ctx, at, entry{stored: stored}, nil)
}

// decodeFound is decode for what came with a reply, within the memory for that; nil for any.
func (c *coder[T]) decodeFound(ctx context.Context, at string, found entry, of *envelope.Budget) (value T, err error) {
	stored := found.stored
	if found.tooLarge != nil {
		return value, &DecodeError{at, stored, found.tooLarge}
	}
	// Not in a buffer of the pool: generated code may let fields share memory with what it reads (zerocopy).
	plain, isRestored, err := c.envelope.AppendValueOf(ctx, nil, at, stored, of)
	if err == nil && !isRestored {
		plain = stored
	}
	if err == nil {
		value, err = c.form.parse(plain)
	}
	if err != nil {
		var none T
		return none, &DecodeError{at, stored, err}
	}
	return value, nil
}

// decodeCopy is decode for what others read, too: the value shares no memory with it.
func (c *coder[T]) decodeCopy(ctx context.Context, at string, stored []byte) (value T, err error) {
	return c.decodeFound(ctx, at, entry{stored: stored}.own(), nil)
}

// measure encodes and decodes a value with every codec that Auto may choose.
func (c *coder[T]) measure(at string, value *T, readsForEachWrite float64) {
	costs := new([len(codecs)]float64)
	// Also when a codec panics.
	defer func() { c.choice.measured(costs) }()
	for _, codec := range c.choice.candidates {
		for round := range rounds {
			cost, err := c.measureOnce(codec, at, value, readsForEachWrite)
			if err != nil {
				costs = nil
				return
			}
			if round == 0 || cost < costs[codec] {
				costs[codec] = cost
			}
		}
	}
}

func (c *coder[T]) measureOnce(codec Codec, at string, value *T, readsForEachWrite float64) (cost float64, err error) {
	trial := coder[T]{form: c.form, envelope: c.trials}
	started := time.Now()
	stored, err := trial.encodeAs(codec, at, value)
	if err != nil {
		return 0, err
	}
	encoded := time.Now()
	if _, err := trial.decode(context.Background(), at, stored); err != nil {
		return 0, err
	}
	decoded := time.Now()
	encoding, decoding := float64(encoded.Sub(started)), float64(decoded.Sub(encoded))
	return c.choice.cost(len(stored), encoding, decoding, readsForEachWrite), nil
}
