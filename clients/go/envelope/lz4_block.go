package envelope

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
)

// The encoder of LZ4 blocks for values that stand right behind a window, the end of a dictionary, which the library cannot
// write (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md).
//
// A block is a row of sequences: literals, which are bytes as they are, and a match, which repeats bytes that stand at most
// 64 KiB before it. To find these, a table says for each hash of some bytes where they stood last. That of a window is made
// once and does not change, so all goroutines share it. That of a value is never cleared between values: its places count
// on from one to the next, and those of earlier values are known by being too low.

const (
	// leastMatch is the shortest match, in bytes.
	leastMatch = 4
	// maxDistance is how far back a match can reach, in bytes.
	maxDistance = 1<<16 - 1
	// lastLiterals is how many bytes at the end of a value are never a match.
	lastLiterals = 5
	// lastMatch is how many bytes before the end of a value the last match starts at the latest: the format's 12, and one,
	// so that the word there ends before the last literals.
	lastMatch = wordLen + lastLiterals
	// wordLen is how many bytes are compared at once.
	wordLen = 8
	// longLength is the length from which on there is more of it behind a token.
	longLength = 15
	// copiedLen is how many bytes are copied at once, where those that are too many do no harm.
	copiedLen = 16
)

func word(of []byte, at int) uint64 { return binary.LittleEndian.Uint64(of[at:]) }

// hashOf mixes the first five bytes of a word; the highest bits are the best. A match of four is hardly worth its sequence.
func hashOf(word uint64) uint64 {
	const prime = 889523592379
	return word << 24 * prime
}

// mostWindowBits is the size of the table of the longest window: one place for each of its bytes.
const mostWindowBits = 16

// windowTable has the places of a window's bytes. It does not change.
type windowTable struct {
	window []byte
	shift  int      // Makes an index of a hash.
	last   []uint16 // The last place of each hash. Where there is none it is 0, which is one, too: places are compared.
}

func newWindowTable(window []byte) *windowTable {
	log := min(bits.Len(uint(len(window))), mostWindowBits)
	made := &windowTable{window, 64 - log, make([]uint16, 1<<log)}
	for at := range len(window) - wordLen + 1 {
		made.last[hashOf(word(window, at))>>made.shift] = uint16(at)
	}
	return made
}

const (
	leastTableBits = 8
	mostTableBits  = 14
)

// valueTable has the places of a value's bytes, for one goroutine at a time.
type valueTable struct {
	next uint32                     // The place of the next value's first byte.
	last [1 << mostTableBits]uint32 // The last place of each hash, of this value or an earlier one.
}

var valueTables = sync.Pool{New: func() any { return new(valueTable) }}

// begin gives the place of the first byte of a value. All places in the table are lower.
func begin(next *uint32, length int, last []uint32) (first uint32) {
	if uint64(*next)+uint64(length) > math.MaxUint32 {
		clear(last)
		*next = 0
	}
	first = max(*next, 1)
	*next = first + uint32(length)
	return first
}

// encode writes the block of a value, and returns its length; 0 if there is too little room. An acceleration from 1 on says
// how soon places are left out where no match is found.
func (w *windowTable) encode(block, value []byte, acceleration int) int {
	table := valueTables.Get().(*valueTable)
	defer valueTables.Put(table)
	first := begin(&table.next, len(value), table.last[:])
	// A short value needs a part of the table only, which stays in the processor's cache.
	shift := 64 - min(max(bits.Len(uint(len(value))), leastTableBits), mostTableBits)
	window := w.window
	written, start, at := 0, 0, 0 // The end of what is written; the first literal; the place that is looked at.
	for {
		var distance, length int
		for tries := acceleration << 6; ; tries++ {
			if at > len(value)-lastMatch {
				return writeLiterals(block, written, value[start:])
			}
			here := word(value, at)
			hash := hashOf(here)
			last := &table.last[hash>>shift&(1<<mostTableBits-1)]
			seen := *last
			*last = first + uint32(at)
			if seen >= first {
				from := int(seen - first)
				distance = at - from
				if differing := here ^ word(value, from); uint32(differing) == 0 && distance <= maxDistance {
					length = matched(differing, value[at:], value[from:])
					before := commonEnd(value[start:at], value[:from])
					at, length = at-before, length+before
					break
				}
			}
			from := int(w.last[hash>>w.shift])
			distance = at + len(window) - from
			if differing := here ^ word(window, from); uint32(differing) == 0 && distance <= maxDistance {
				length = matched(differing, value[at:], window[from:])
				if from+length == len(window) {
					length += common(value[at+length:len(value)-lastLiterals], value)
				}
				before := commonEnd(value[start:at], window[:from])
				at, length = at-before, length+before
				break
			}
			at += tries >> 6
		}
		if written = writeSequence(block, written, value, start, at, distance, length); written == 0 {
			return 0
		}
		at += length
		start = at
	}
}

// matched is the length of a match for what is left of a value, whose first words differ so.
func matched(differing uint64, value, other []byte) int {
	if differing != 0 {
		return bits.TrailingZeros64(differing) / 8
	}
	return wordLen + common(value[wordLen:len(value)-lastLiterals], other[wordLen:])
}

// common is how many bytes are the same at the start of both.
func common(one, other []byte) (length int) {
	most := min(len(one), len(other))
	for ; length+wordLen <= most; length += wordLen {
		if differing := word(one, length) ^ word(other, length); differing != 0 {
			return length + bits.TrailingZeros64(differing)/8
		}
	}
	for length < most && one[length] == other[length] {
		length++
	}
	return length
}

// commonEnd is how many bytes are the same at the end of both.
func commonEnd(one, other []byte) (length int) {
	for most := min(len(one), len(other)); length < most && one[len(one)-1-length] == other[len(other)-1-length]; {
		length++
	}
	return length
}

// writeSequence writes value[start:at] and a match behind what is written, and returns the end of that; 0 if there is too
// little room.
func writeSequence(block []byte, written int, value []byte, start, at, distance, length int) int {
	literals := at - start
	length -= leastMatch
	if written+literals+literals/255+length/255+5 > len(block) {
		return 0
	}
	token := written
	written++
	block[token] = byte(min(literals, longLength)<<4 | min(length, longLength))
	if literals >= longLength {
		written = writeLength(block, written, literals)
	}
	if literals <= copiedLen && written+copiedLen <= len(block) && start+copiedLen <= len(value) {
		*(*[copiedLen]byte)(block[written:]) = *(*[copiedLen]byte)(value[start:])
	} else {
		copy(block[written:], value[start:at])
	}
	written += literals
	binary.LittleEndian.PutUint16(block[written:], uint16(distance))
	written += 2
	if length >= longLength {
		written = writeLength(block, written, length)
	}
	return written
}

// writeLiterals writes the end of a block, and returns where that is; 0 if there is too little room.
func writeLiterals(block []byte, written int, literals []byte) int {
	if written+len(literals)+len(literals)/255+2 > len(block) {
		return 0
	}
	block[written] = byte(min(len(literals), longLength) << 4)
	written++
	if len(literals) >= longLength {
		written = writeLength(block, written, len(literals))
	}
	return written + copy(block[written:], literals)
}

// writeLength writes what there is of a length behind the token.
func writeLength(block []byte, written, length int) int {
	for length -= longLength; length >= 255; length -= 255 {
		block[written] = 255
		written++
	}
	block[written] = byte(length)
	return written + 1
}
