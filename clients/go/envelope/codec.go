package envelope

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"snugly.dev/go/internal/globs"
	"snugly.dev/go/internal/policy"
)

// Codec encodes and decodes values under one set of options. It is for any number of goroutines.
type Codec struct {
	options Options
	writer  writer
	// fallbacks are for a value that must be encoded: the chosen backend, and the others with their default levels.
	fallbacks []writer
	// prober goes first where a value probably does not shrink; without a compressor where writer is as fast.
	prober   writer
	policy   *policy.Policy // Of writer's backend and level; nil to try every value.
	counted  *Statistics    // Changed by atomic additions only.
	encoding stopwatch
	decoding stopwatch
}

// writer is a backend at a level.
type writer struct {
	number        byte
	hasDictionary bool
	compressor    compressor // nil for None.
}

// New makes a codec. It returns an *OptionError for an option that cannot be.
func New(options Options) (*Codec, error) {
	options, chosen, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	codec := &Codec{options: options, policy: new(policy.Policy), counted: new(Statistics)}
	if chosen != nil {
		made, err := chosen.newCompressor(options.effort())
		if err != nil {
			return nil, err
		}
		codec.writer = writer{number: chosen.number, compressor: made}
		codec.fallbacks = append(codec.fallbacks, codec.writer)
		if codec.prober, err = chosen.newProber(options.effort(), codec.writer); err != nil {
			return nil, err
		}
	}
	for at := range backends {
		other := &backends[at]
		if other == chosen || other.newCompressor == nil {
			continue
		}
		made, err := other.newCompressor(effort{other.defaultLevel, options.Checksum, options.Window})
		if err != nil {
			return nil, err
		}
		codec.fallbacks = append(codec.fallbacks, writer{number: other.number, compressor: made})
	}
	return codec, nil
}

// newProber makes a writer at a fast level, without a compressor where the writer is as fast.
func (b *backend) newProber(use effort, usual writer) (writer, error) {
	if use.level <= b.probeLevel {
		return writer{}, nil
	}
	use.level = b.probeLevel
	made, err := b.newCompressor(use)
	if err != nil || made == usual.compressor {
		return writer{}, err
	}
	return writer{number: b.number, compressor: made}, nil
}

// Encode appends what is to be stored for a value whose key nobody knows: its envelope, or the value itself where that
// gains nothing. It never fails. dst and value must not overlap.
func (c *Codec) Encode(dst, value []byte) []byte { return c.EncodeFor(dst, "", value) }

// EncodeFor is Encode for the value of a key, by which the dictionary is chosen, if there are some.
func (c *Codec) EncodeFor(dst []byte, key string, value []byte) []byte {
	stored, isEncoded := c.AppendEnvelope(dst, key, value)
	if !isEncoded {
		return append(stored, value...)
	}
	return stored
}

// AppendEnvelope is EncodeFor for callers who have the value and need no copy of it: it appends the envelope, or returns
// dst, perhaps with more room, and false for a value that is to be stored as it is.
func (c *Codec) AppendEnvelope(dst []byte, key string, value []byte) (stored []byte, isEncoded bool) {
	started := c.encoding.start()
	stored, number, skipped := c.encode(dst, key, value)
	started.stop(&c.counted.EncodeNanoseconds)
	counted, length := &c.counted.None, len(value)
	isEncoded = number != 0
	if isEncoded {
		counted, length = c.statisticsOf(number), len(stored)-len(dst)
	} else if skipped != nil {
		atomic.AddUint64(skipped, 1)
	}
	atomic.AddUint64(&counted.EncodedValues, 1)
	atomic.AddUint64(&counted.EncodedBytesIn, uint64(len(value)))
	atomic.AddUint64(&counted.EncodedBytesOut, uint64(length))
	return stored, isEncoded
}

// encode appends an envelope and returns its backend; or it returns dst, 0, and the counter of why the value stays as it
// is, if that is counted.
func (c *Codec) encode(dst []byte, key string, value []byte) (stored []byte, number byte, skipped *uint64) {
	if Is(value) {
		if c.options.ExistingEnvelopes == Keep && isWellFormed(value, c.options.MaxDecompressedSize) {
			return dst, 0, &c.counted.SkippedCompressed
		}
		return c.encodeInAnyCase(dst, value)
	}
	switch {
	case c.writer.compressor == nil, c.Excludes(key):
		return dst, 0, nil
	case len(value) < c.options.MinCompressionSize:
		return dst, 0, &c.counted.SkippedSmall
	case len(value) > c.options.MaxDecompressedSize:
		return dst, 0, &c.counted.SkippedLarge
	}
	writer := c.writerFor(key)
	attempt, reason := c.policy.Consider(value, writer.hasDictionary)
	switch reason {
	case policy.Compressed:
		return dst, 0, &c.counted.SkippedCompressed
	case policy.NoGain:
		return dst, 0, &c.counted.SkippedNoGain
	}
	// A dictionary has tables for each level: those for a fast one would cost time and memory.
	first := writer
	if attempt.IsDoubtful() && !writer.hasDictionary && c.prober.compressor != nil {
		first = c.prober
	}
	// The envelope is to be shorter than the value.
	room := len(value) - HeaderLen - 1
	stored, ok := first.append(dst, value, room)
	if ok {
		attempt.Report(len(stored) > len(dst))
		if len(stored) > len(dst) && first != writer {
			stored, ok = writer.append(stored[:len(dst)], value, room)
		}
	}
	switch {
	case !ok:
		return stored, 0, &c.counted.EncodeFailures
	case len(stored) == len(dst):
		return stored, 0, &c.counted.SkippedNoGain
	}
	return stored, writer.number, nil
}

// Excludes tells whether Options.Exclude names a key.
func (c *Codec) Excludes(key string) bool { return globs.MatchesAny(c.options.Exclude, key) }

// encodeInAnyCase is for a value that would be taken for an envelope: it is encoded whatever its length and even if it
// grows, with the chosen backend or, if that is none or fails, with any other that foreign readers know, too.
func (c *Codec) encodeInAnyCase(dst, value []byte) ([]byte, byte, *uint64) {
	for _, writer := range c.fallbacks {
		stored, ok := writer.append(dst, value, writer.compressor.bound(len(value)))
		if ok && len(stored) > len(dst) {
			return stored, writer.number, nil
		}
	}
	return dst, 0, &c.counted.EncodeFailures
}

// writerFor gives what values of a key are written with.
func (c *Codec) writerFor(key string) writer {
	if c.options.Dictionaries == nil {
		return c.writer
	}
	dictionary := c.options.Dictionaries.For(key)
	if dictionary == nil {
		return c.writer
	}
	made, err := backendNumbered(c.writer.number).withDictionary(dictionary, c.options.effort())
	if err != nil {
		return c.writer
	}
	return made
}

// append appends an envelope whose payload takes at most room bytes, or nothing if it would take more. It returns false if
// compressing failed.
func (w writer) append(dst, value []byte, room int) ([]byte, bool) {
	stored := slices.Grow(dst, HeaderLen+room)
	stored = append(append(stored, magic...), w.number)
	payload := len(stored)
	stored, ok := w.compressor.compress(stored, value, room)
	if !ok || len(stored) == payload {
		return stored[:len(dst)], ok
	}
	return stored, true
}

// Decode appends the value that is stored: the bytes themselves if they are no envelope. It returns an
// *UndecodableError for an envelope that cannot be read, and dst as it was.
func (c *Codec) Decode(dst, stored []byte) ([]byte, error) {
	return c.DecodeFor(context.Background(), dst, "", stored)
}

// DecodeFor is Decode for what was read from a key, which errors name. If the value needs a dictionary that is not at
// hand, it is fetched for as long as ctx allows.
func (c *Codec) DecodeFor(ctx context.Context, dst []byte, key string, stored []byte) ([]byte, error) {
	value, isRestored, err := c.AppendValue(ctx, dst, key, stored)
	if err == nil && !isRestored {
		return append(dst, stored...), nil
	}
	return value, err
}

// AppendValue is DecodeFor for callers who have what is stored and need no copy of it: it appends the value that is in
// an envelope, or returns dst and false if the stored bytes are the value.
func (c *Codec) AppendValue(ctx context.Context, dst []byte, key string, stored []byte) (value []byte, isRestored bool, err error) {
	return c.AppendValueOf(ctx, dst, key, stored, nil)
}

// AppendValueOf is AppendValue for one of the values of a reply, which together may take no more than its budget; nil for
// one that takes any.
func (c *Codec) AppendValueOf(ctx context.Context, dst []byte, key string, stored []byte, of *Budget) (value []byte, isRestored bool, err error) {
	counted := &c.counted.None
	length := len(stored)
	if Is(stored) {
		started := c.decoding.start()
		decoded, failure := c.decode(ctx, dst, stored, c.bound(of))
		started.stop(&c.counted.DecodeNanoseconds)
		if failure != nil {
			atomic.AddUint64(&c.counted.DecodeFailures, 1)
			if c.options.OnUndecodable == Raw {
				return dst, false, nil
			}
			failure.Key, failure.Stored, failure.Backend = strings.Clone(key), bytes.Clone(stored), stored[len(magic)]
			return dst, false, failure
		}
		value, isRestored = decoded, true
		counted, length = c.statisticsOf(stored[len(magic)]), len(decoded)-len(dst)
		of.take(length)
	} else {
		value = dst
	}
	atomic.AddUint64(&counted.DecodedValues, 1)
	atomic.AddUint64(&counted.DecodedBytesIn, uint64(len(stored)))
	atomic.AddUint64(&counted.DecodedBytesOut, uint64(length))
	return value, isRestored, nil
}

// decode appends the value of an envelope. Of an error it gives kind and reason, and what there is to say of a
// dictionary. The order of the checks is that of spec/envelope.md.
func (c *Codec) decode(ctx context.Context, dst, stored []byte, most bound) ([]byte, *UndecodableError) {
	row := backendNumbered(stored[len(magic)])
	if row == nil {
		return dst, &UndecodableError{Kind: UnknownBackend, Reason: "its backend is unknown: a newer client may have written it"}
	}
	payload := stored[HeaderLen:]
	found, fault := row.extent(payload)
	if fault != "" {
		return dst, corrupt(row, payload, fault)
	}
	var dictionary *Dictionary
	var failure *UndecodableError
	if row.lengthsFirst {
		failure = checkClaim(row, payload, found, most)
	}
	if failure == nil && row.needsDictionary {
		dictionary, failure = c.dictionary(ctx, found.dictionary)
	}
	if failure == nil && !row.lengthsFirst {
		failure = checkClaim(row, payload, found, most)
	}
	if failure != nil {
		return dst, failure
	}
	value, kind, fault := row.decompress(dst, payload, found, most.limit, dictionary)
	switch kind {
	case "":
		return value, nil
	case TooLarge:
		return dst, tooLarge(row, "holds more bytes than may be", most)
	}
	return dst, corrupt(row, payload, fault)
}

// checkClaim refuses a payload that claims more than may be, or more than it can reach.
func checkClaim(row *backend, payload []byte, found extent, most bound) *UndecodableError {
	switch {
	case !found.isClaimed:
		return nil
	case found.claimed > uint64(most.limit):
		return tooLarge(row, fmt.Sprintf("claims %d bytes", found.claimed), most)
	case found.claimed > found.reach:
		return corrupt(row, payload, fmt.Sprintf("it claims %d bytes but can reach %d at most", found.claimed, found.reach))
	}
	return nil
}

// dictionary gets the dictionary of an ID, at hand or not.
func (c *Codec) dictionary(ctx context.Context, id uint32) (*Dictionary, *UndecodableError) {
	if c.options.Dictionaries != nil {
		if held := c.options.Dictionaries.AtHand(id); held != nil {
			atomic.AddUint64(&c.counted.DictionaryHits, 1)
			return held, nil
		}
	}
	atomic.AddUint64(&c.counted.DictionaryMisses, 1)
	failure := &UndecodableError{Kind: DictionaryMissing, Dictionary: id, Reason: fmt.Sprintf("it needs the dictionary %d, which is not at hand", id)}
	if c.options.Dictionaries == nil {
		failure.Reason += ": a client that compresses fetches it, unless the server has lost it; a codec alone needs Options.Dictionaries"
		return nil, failure
	}
	fetched, err := c.options.Dictionaries.Fetch(ctx, id)
	if fetched == nil {
		failure.Err = err
		return nil, failure
	}
	return fetched, nil
}

func corrupt(row *backend, payload []byte, fault string) *UndecodableError {
	reason := fmt.Sprintf("a %s payload of %d bytes is corrupt: %s", row.name, len(payload), fault)
	return &UndecodableError{Kind: Corrupt, Reason: reason}
}

func tooLarge(row *backend, what string, most bound) *UndecodableError {
	reason := fmt.Sprintf("a %s payload %s, over %s: raise %s to read it", row.name, what, fmt.Sprintf(most.says, most.limit), most.option)
	return &UndecodableError{Kind: TooLarge, Reason: reason}
}

// Statistics are the counts since the codec was made.
func (c *Codec) Statistics() Statistics {
	var copied Statistics
	counted := c.counted.rows()
	for at, row := range copied.rows() {
		*row.value = atomic.LoadUint64(counted[at].value)
	}
	return copied
}

func (c *Codec) statisticsOf(number byte) *BackendStatistics {
	switch number {
	case numberZstd:
		return &c.counted.Zstd
	case numberLZ4:
		return &c.counted.LZ4
	case numberZstdDictionary:
		return &c.counted.ZstdDictionary
	}
	return &c.counted.LZ4Dictionary
}
