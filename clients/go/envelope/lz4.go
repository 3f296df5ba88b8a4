package envelope

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// lengthLen is the length of what an LZ4 payload has in front of its block, in bytes: the value's length.
const lengthLen = 4

// reachOfByte is the most that a byte of a block can stand for, in bytes.
const reachOfByte = 255

// lz4Depths are the numbers of candidates that are looked at for each match, for the levels from 1 on: the table of
// spec/envelope.md.
var lz4Depths = [...]lz4.CompressionLevel{2, 2, 4, 8, 16, 32, 64, 128, 256, 512, 4096, 16384}

// blockCompressor is one of the library's contexts, for one goroutine at a time.
type blockCompressor interface {
	CompressBlock(src, dst []byte) (int, error)
}

type lz4Compressor struct {
	contexts sync.Pool
}

func newLZ4(use effort) (compressor, error) {
	return &lz4Compressor{sync.Pool{New: func() any { return newBlockCompressor(use.level) }}}, nil
}

func newBlockCompressor(level int) blockCompressor {
	switch {
	case level > 0:
		return &lz4.CompressorHC{Level: lz4Depths[level-1]}
	case level < 0:
		return &lz4.CompressorCCompat{Acceleration: -level}
	}
	return &lz4.Compressor{}
}

func (c *lz4Compressor) bound(length int) int { return lengthLen + lz4.CompressBlockBound(length) }

func (c *lz4Compressor) compress(dst, value []byte, room int) ([]byte, bool) {
	if uint64(len(value)) > math.MaxUint32 {
		return dst, false
	}
	if room <= lengthLen {
		return dst, true
	}
	start := len(dst) + lengthLen
	compressed := binary.LittleEndian.AppendUint32(slices.Grow(dst, room), uint32(len(value)))
	context := c.contexts.Get().(blockCompressor)
	// The library fails only where there is too little room, and says so by an error or by 0.
	length, err := context.CompressBlock(value, compressed[start:start+room-lengthLen])
	c.contexts.Put(context)
	if err != nil || length == 0 {
		return dst, true
	}
	return compressed[:start+length], true
}

func blockExtent(payload []byte) (extent, string) {
	if len(payload) < lengthLen {
		return extent{}, "the length of the value is cut off"
	}
	claimed := uint64(binary.LittleEndian.Uint32(payload))
	return extent{claimed: claimed, isClaimed: true, reach: reachOfByte * uint64(len(payload)-lengthLen)}, ""
}

func isBlock(payload []byte, limit int) bool {
	found, fault := blockExtent(payload)
	return fault == "" && found.claimed <= uint64(limit) && found.claimed <= found.reach
}

func decompressBlock(dst, payload []byte, found extent, _ int, _ *Dictionary) ([]byte, Kind, string) {
	value, fault := appendBlock(dst, payload[lengthLen:], int(found.claimed), nil)
	if fault != "" {
		return dst, Corrupt, fault
	}
	return value, "", ""
}

// appendBlock appends the value of a block, which claims its length, and stands right behind a window; nil for none.
func appendBlock(dst, block []byte, claimed int, window []byte) (value []byte, fault string) {
	switch {
	case len(block) == 0:
		return dst, "there is no block"
	case claimed == 0 && (len(block) > 1 || block[0] != 0):
		return dst, "the block is not that of nothing"
	case claimed == 0:
		return dst, ""
	}
	value = slices.Grow(dst, claimed)[:len(dst)+claimed]
	length, err := lz4.UncompressBlockWithDict(block, value[len(dst):], window)
	switch {
	case err != nil:
		return dst, "the block is damaged"
	case length != claimed:
		return dst, "it decodes to fewer bytes than it claims"
	}
	return value, ""
}
