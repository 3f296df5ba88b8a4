package compression

import (
	"context"
	"iter"
	"sync"
	"time"
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

// Reply restores the values of one reply, or of all that came together, within what these may take. It is for one
// goroutine.
type Reply struct {
	compressor *Compressor
	ctx        context.Context
	budget     envelope.Budget
	until      time.Time // The end of waiting for dictionaries; zero until somebody waits.
}

// Reply begins to restore a reply. Dictionaries are waited for as long as ctx allows, and all together no longer than the
// client lets the server take for a reply.
func (c *Compressor) Reply(ctx context.Context) Reply {
	return Reply{compressor: c, ctx: ctx, budget: c.budget}
}

// Restore returns the value of what was stored at a key: the same text if it is no envelope. For an envelope that cannot be
// read it returns an *envelope.UndecodableError, or ErrMiss where the application is to see no value.
func (r *Reply) Restore(key, stored string) (string, error) {
	if !r.NeedsDictionary(stored) {
		return r.RestoreAtHand(key, stored)
	}
	waiting, end := r.waiting()
	defer end()
	return r.restore(waiting, key, stored)
}

// RestoreAtHand is Restore for what is known to need no dictionary that is not at hand.
func (r *Reply) RestoreAtHand(key, stored string) (string, error) {
	return r.restore(r.ctx, key, stored)
}

func (r *Reply) restore(ctx context.Context, key, stored string) (string, error) {
	// The codec changes nothing in what it is given.
	value, isRestored, err := r.compressor.codec.AppendValueOf(ctx, nil, key, bytesOf(stored), &r.budget)
	if err != nil && r.compressor.missed != nil && r.ctx.Err() == nil {
		r.compressor.missed.note(err)
		return "", ErrMiss
	}
	if err != nil || !isRestored {
		return stored, err
	}
	// Nobody else has these bytes.
	return unsafe.String(unsafe.SliceData(value), len(value)), nil
}

// waiting is the context of whoever waits for dictionaries, until what is returned with it is called.
func (r *Reply) waiting() (context.Context, context.CancelFunc) {
	if r.compressor.longestWait <= 0 {
		return r.ctx, func() {}
	}
	if r.until.IsZero() {
		r.until = time.Now().Add(r.compressor.longestWait)
	}
	return context.WithDeadlineCause(r.ctx, r.until, r.compressor.tooLate)
}

// NeedsDictionary tells whether a value that was stored needs a dictionary that is not at hand.
func (r *Reply) NeedsDictionary(stored string) bool {
	return r.compressor.missing(stored) != 0
}

// missing is the ID of the dictionary that a value needs and that is not at hand; 0 for none.
func (c *Compressor) missing(stored string) uint32 {
	id := c.codec.Needs(bytesOf(stored))
	if id != 0 && c.manager.AtHand(id) != nil {
		return 0
	}
	return id
}

// Gather fetches the dictionaries that some values of one reply need and that are not at hand, all at once: restored one
// after another, the values would wait for each dictionary in turn.
func (r *Reply) Gather(stored iter.Seq[string]) {
	// A reply that the iteration had would be allocated for each command.
	compressor := r.compressor
	var missing []uint32
	for each := range stored {
		if id := compressor.missing(each); id != 0 {
			missing = append(missing, id)
		}
	}
	// Restoring does the same for one, and has the error.
	if len(missing) > 1 {
		waiting, end := r.waiting()
		defer end()
		_ = compressor.manager.FetchAll(waiting, missing...)
	}
}

// IsEnvelope tells whether something stored may be an envelope.
func IsEnvelope(stored string) bool { return envelope.Is(bytesOf(stored)) }

func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
