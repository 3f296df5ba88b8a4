package envelope

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// The payload of LZ4 with a dictionary: what stands in front of the block, and how it is read and written. A block says
// nothing of its dictionary, and decodes with another one into other bytes; hence ID and checksum.

const (
	// blockHeaderLen is the length of what is in front of the block, in bytes: the dictionary's ID, the value's length and
	// its checksum, 4 bytes each.
	blockHeaderLen = 12
	// windowLen is how much of a dictionary's end counts, in bytes.
	windowLen = 1 << 16
)

// blockHeader is what is in front of a block.
type blockHeader struct {
	dictionary uint32
	length     uint32 // Of the value, in bytes.
	checksum   uint32 // The value's xxh32.
}

func blockHeaderOf(payload []byte) blockHeader {
	return blockHeader{
		binary.LittleEndian.Uint32(payload), binary.LittleEndian.Uint32(payload[4:]), binary.LittleEndian.Uint32(payload[8:]),
	}
}

func dictionaryBlockExtent(payload []byte) (extent, string) {
	if len(payload) <= blockHeaderLen {
		return extent{}, "the dictionary's ID, the length, the checksum or the block is cut off"
	}
	header := blockHeaderOf(payload)
	if header.dictionary < leastDictionaryID {
		return extent{}, fmt.Sprintf("it needs the dictionary %d, which is no dictionary's ID", header.dictionary)
	}
	return extent{
		claimed: uint64(header.length), isClaimed: true, reach: reachOfByte * uint64(len(payload)-blockHeaderLen),
		dictionary: header.dictionary,
	}, ""
}

func isDictionaryBlock(payload []byte, limit int) bool {
	found, fault := dictionaryBlockExtent(payload)
	return fault == "" && found.claimed <= uint64(limit) && found.claimed <= found.reach
}

func decompressDictionaryBlock(dst, payload []byte, found extent, _ int, dictionary *Dictionary) ([]byte, Kind, string) {
	value, fault := appendBlock(dst, payload[blockHeaderLen:], int(found.claimed), dictionary.window())
	if fault == "" {
		stated, actual := blockHeaderOf(payload).checksum, xxh32(value[len(dst):])
		if stated == actual {
			return value, "", ""
		}
		fault = fmt.Sprintf("it decodes to a value with the checksum %08x where %08x is stated", actual, stated)
	}
	return dst, Corrupt, fmt.Sprintf("with the dictionary %d and a value of %d bytes claimed, %s", found.dictionary, found.claimed, fault)
}

// window is what LZ4 is given of a dictionary: the bytes that a value stands right behind.
func (d *Dictionary) window() []byte { return d.bytes[max(0, len(d.bytes)-windowLen):] }

// blockCompressors are those of one dictionary: one for each level. Its tables are made when they are needed first.
type blockCompressors struct {
	table  func() *windowTable  // For the levels up to 0.
	chains func() *windowChains // For those from 1 on.
	made   sync.Map             // From level to *dictionaryBlockCompressor.
}

func newBlockCompressors(window []byte) *blockCompressors {
	return &blockCompressors{
		table:  sync.OnceValue(func() *windowTable { return newWindowTable(window) }),
		chains: sync.OnceValue(func() *windowChains { return newWindowChains(window) }),
	}
}

type dictionaryBlockCompressor struct {
	dictionary *Dictionary
	level      int
}

// blockWriter writes blocks with a dictionary.
func blockWriter(with *Dictionary, use effort) (writer, error) {
	made, ok := with.blocks.made.Load(use.level)
	if !ok {
		made, _ = with.blocks.made.LoadOrStore(use.level, &dictionaryBlockCompressor{with, use.level})
	}
	return writer{numberLZ4Dictionary, true, made.(*dictionaryBlockCompressor)}, nil
}

func (c *dictionaryBlockCompressor) bound(length int) int {
	return blockHeaderLen + lz4.CompressBlockBound(length)
}

func (c *dictionaryBlockCompressor) compress(dst, value []byte, room int) ([]byte, bool) {
	if uint64(len(value)) > math.MaxUint32 {
		return dst, false
	}
	if room <= blockHeaderLen {
		return dst, true
	}
	compressed := slices.Grow(dst, room)
	for _, field := range [...]uint32{c.dictionary.id, uint32(len(value)), xxh32(value)} {
		compressed = binary.LittleEndian.AppendUint32(compressed, field)
	}
	start := len(compressed)
	length := c.encode(compressed[start:len(dst)+room], value)
	if length == 0 {
		return dst, true
	}
	return compressed[:start+length], true
}

// encode writes a value's block, and returns its length; 0 if there is too little room.
func (c *dictionaryBlockCompressor) encode(block, value []byte) int {
	if c.level > 0 {
		return c.dictionary.blocks.chains().encode(block, value, int(lz4Depths[c.level-1]))
	}
	return c.dictionary.blocks.table().encode(block, value, max(1, -c.level))
}
