package envelope

import (
	"errors"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstdLevel is a level of the library, which has four, and the levels of the format that it stands for.
type zstdLevel struct {
	from  int // The least level of the format.
	level zstd.EncoderLevel
	most  int // Contexts for values up to 1 MiB, and as many for longer ones.
}

// The table of spec/envelope.md, the highest levels first. A level of the library stands for those at which the zstd in C
// takes about as long.
var zstdLevels = [...]zstdLevel{
	{10, zstd.SpeedBestCompression, 4},
	{6, zstd.SpeedBetterCompression, 8},
	{4, zstd.SpeedDefault, 16},
	{-131072, zstd.SpeedFastest, 32},
}

// oneSegment is the longest value whose frame is one segment, in bytes.
const oneSegment = 1 << 20

// decodedOverAlloc is the room that the library wants behind a value to decode with its fastest code, in bytes.
const decodedOverAlloc = 16

// plainCompressors are for frames without a dictionary.
var plainCompressors zstdCompressors

type zstdCompressor struct {
	// Values up to 1 MiB are one segment, so that every frame has its content size. Longer ones are not,
	// so that nobody needs memory for all of them to decode one.
	short, long *contexts
}

func newZstd(use effort) (compressor, error) { return plainCompressors.with(use, nil) }

// frameWriter writes frames with a dictionary.
func frameWriter(with *Dictionary, use effort) (writer, error) {
	made, err := with.compressors.with(use, with.bytes)
	return writer{numberZstdDictionary, true, made}, err
}

func rowOf(level int) *zstdLevel {
	return &zstdLevels[slices.IndexFunc(zstdLevels[:], func(row zstdLevel) bool { return level >= row.from })]
}

func newZstdCompressor(row *zstdLevel, use effort, dictionary []byte) (*zstdCompressor, error) {
	options := []zstd.EOption{
		zstd.WithEncoderLevel(row.level),
		// Otherwise the fastest level leaves values in which nothing repeats as they are: hexadecimal digits, for one.
		zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderCRC(use.checksum),
		zstd.WithWindowSize(use.window),
		zstd.WithLowerEncoderMem(true),
		zstd.WithZeroFrames(true),
	}
	if dictionary != nil {
		options = append(options, zstd.WithEncoderDict(dictionary))
	}
	short := append(slices.Clip(options), zstd.WithSingleSegment(true))
	made := &zstdCompressor{newContexts(row.most, short...), newContexts(row.most, options...)}
	// Options and dictionaries that cannot be are found here.
	encoder, err := made.short.take()
	if err != nil {
		return nil, err
	}
	made.short.leave(encoder)
	return made, nil
}

func (c *zstdCompressor) contexts(length int) *contexts {
	if length <= oneSegment {
		return c.short
	}
	return c.long
}

func (c *zstdCompressor) bound(length int) int {
	contexts := c.contexts(length)
	encoder, err := contexts.take()
	if err != nil {
		return 0
	}
	defer contexts.leave(encoder)
	return encoder.MaxEncodedSize(length)
}

func (c *zstdCompressor) compress(dst, value []byte, room int) (compressed []byte, ok bool) {
	contexts := c.contexts(len(value))
	encoder, err := contexts.take()
	if err != nil {
		return dst, false
	}
	defer func() {
		contexts.leave(encoder)
		// The library panics where it cannot go on.
		if recover() != nil {
			compressed, ok = dst, false
		}
	}()
	compressed = encoder.EncodeAll(value, slices.Grow(dst, min(room, encoder.MaxEncodedSize(len(value)))))
	if len(compressed)-len(dst) > room {
		return compressed[:len(dst)], true
	}
	return compressed, true
}

// decoders decode frames, with one dictionary or without.
type decoders struct {
	// any appends as much as the frame has; within keeps to the room that there is.
	any, within func() (*zstd.Decoder, error)
}

// plainDecoders are for frames without a dictionary.
var plainDecoders = newDecoders()

func newDecoders(options ...zstd.DOption) *decoders {
	// The window is only checked: values are decoded in one call, into the result.
	options = append(options, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(1<<62))
	within := append(slices.Clip(options), zstd.WithDecodeAllCapLimit(true))
	return &decoders{
		sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, options...) }),
		sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, within...) }),
	}
}

func isFrame(payload []byte, _ int) bool {
	_, fault := parseFrameHeader(payload)
	return fault == ""
}

func isDictionaryFrame(payload []byte, _ int) bool {
	header, fault := parseFrameHeader(payload)
	return fault == "" && header.dictionary != 0
}

func dictionaryFrameExtent(payload []byte) (extent, string) {
	found, fault := frameExtent(payload)
	if fault == "" && found.dictionary == 0 {
		return found, "it does not say which dictionary it needs"
	}
	return found, fault
}

func decompressFrame(dst, payload []byte, found extent, limit int, dictionary *Dictionary) ([]byte, Kind, string) {
	from := plainDecoders
	if dictionary != nil {
		from = dictionary.decoders
	}
	if !found.isClaimed && found.reach > uint64(limit) {
		return decompressWithin(dst, payload, limit, from)
	}
	if found.isClaimed {
		dst = slices.Grow(dst, int(found.claimed)+decodedOverAlloc)
	}
	decoder, err := from.any()
	if err != nil {
		return dst, Corrupt, err.Error()
	}
	value, err := decoder.DecodeAll(payload, dst)
	if err != nil {
		return dst, Corrupt, err.Error()
	}
	return value, "", ""
}

// The first room for a value whose length nobody knows and that may be longer than is allowed, in multiples of the
// payload; then four times as much each time, so that little is decoded twice.
const (
	firstRoom      = 8
	leastFirstRoom = 4 << 10
	nextRoom       = 4
)

// decompressWithin is decompressFrame for such a value.
func decompressWithin(dst, payload []byte, limit int, from *decoders) ([]byte, Kind, string) {
	decoder, err := from.within()
	if err != nil {
		return dst, Corrupt, err.Error()
	}
	most := uint64(limit)
	for next := min(max(firstRoom*uint64(len(payload)), leastFirstRoom), most); ; next = min(nextRoom*next, most) {
		room := int(next)
		dst = slices.Grow(dst, room)
		start := len(dst)
		value, err := decoder.DecodeAll(payload, dst[start:start:start+room])
		switch {
		case err == nil:
			return dst[:start+len(value)], "", ""
		case !errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return dst, Corrupt, err.Error()
		case room == limit:
			return dst, TooLarge, ""
		}
	}
}
