package envelope

import (
	"encoding/binary"
	"sync"
)

// The encoder of blocks for the levels from 1 on, which looks at several places for each match. Its tables are like those of
// lz4_block.go, and tell for each place besides where its hash stood before: a chain of places, which leads from the value
// into the window.

const (
	chainBits = 15
	// reached is how many places of a value a chain keeps: more than a match reaches back.
	reached = maxDistance + 1
)

// chainHash mixes four bytes.
func chainHash(of []byte, at int) uint32 {
	const prime = 2654435761
	return binary.LittleEndian.Uint32(of[at:]) * prime >> (32 - chainBits)
}

// windowChains has all places of a window's bytes. It does not change.
type windowChains struct {
	window []byte
	last   []uint16 // The last place of each hash. Where there is none it is 0, which is one, too: places are compared.
	back   []uint16 // The distance from each place to the one before with its hash; 0 where there is none.
}

func newWindowChains(window []byte) *windowChains {
	made := &windowChains{window, make([]uint16, 1<<chainBits), make([]uint16, len(window))}
	for at := range len(window) - wordLen + 1 {
		last := &made.last[chainHash(window, at)]
		made.back[at] = uint16(at) - *last
		*last = uint16(at)
	}
	return made
}

// valueChains has all places of a value's bytes, for one goroutine at a time.
type valueChains struct {
	next uint32                 // The place of the next value's first byte.
	last [1 << chainBits]uint32 // The last place of each hash, of this value or an earlier one.
	back [reached]uint16        // Like that of a window, by the last bits of the place.
}

var chainsOfValues = sync.Pool{New: func() any { return new(valueChains) }}

// encode writes the block of a value, and returns its length; 0 if there is too little room. It looks at so many places for
// a match, the depth, and takes the longest, unless the match at the next byte is longer.
func (c *windowChains) encode(block, value []byte, depth int) int {
	own := chainsOfValues.Get().(*valueChains)
	defer chainsOfValues.Put(own)
	looked := search{c, own, value, begin(&own.next, len(value), own.last[:]), depth}
	written, start, at, noted := 0, 0, 0, 0 // The last is behind the places that are in the chains.
	for at <= len(value)-lastMatch {
		noted = looked.noteUntil(noted, at+1)
		distance, length := looked.longest(at, leastMatch-1)
		if distance == 0 {
			at++
			continue
		}
		for at < len(value)-lastMatch {
			noted = looked.noteUntil(noted, at+2)
			nextDistance, nextLength := looked.longest(at+1, length)
			if nextDistance == 0 {
				break
			}
			at, distance, length = at+1, nextDistance, nextLength
		}
		if written = writeSequence(block, written, value, start, at, distance, length); written == 0 {
			return 0
		}
		at += length
		start = at
	}
	return writeLiterals(block, written, value[start:])
}

// search looks for matches in one value.
type search struct {
	*windowChains
	own   *valueChains
	value []byte
	first uint32 // The place of the value's first byte.
	depth int
}

// noteUntil adds the places from one to another to the chains.
func (s *search) noteUntil(at, end int) int {
	for ; at < end; at++ {
		hash := chainHash(s.value, at)
		distance := at + len(s.window) - int(s.last[hash])
		if seen := s.own.last[hash]; seen >= s.first {
			distance = at - int(seen-s.first)
		}
		if distance > maxDistance {
			distance = 0
		}
		place := s.first + uint32(at)
		s.own.last[hash], s.own.back[place%reached] = place, uint16(distance)
	}
	return at
}

// longest gives the longest match for the value from a place on that is longer than the least; all 0 if there is none.
func (s *search) longest(at, least int) (distance, length int) {
	here := s.value[at : len(s.value)-lastLiterals]
	looked, back := 0, int(s.own.back[(s.first+uint32(at))%reached])
	for left := s.depth; left > 0 && back > 0 && least < len(here); left-- {
		if looked += back; looked > maxDistance {
			break
		}
		found := 0
		if from := at - looked; from >= 0 {
			back = int(s.own.back[(s.first+uint32(from))%reached])
			if s.value[from+least] == here[least] {
				found = common(here, s.value[from:])
			}
		} else {
			from += len(s.window)
			back = int(s.back[from])
			if from+least >= len(s.window) || s.window[from+least] == here[least] {
				found = common(here, s.window[from:])
			}
			if from+found == len(s.window) {
				found += common(here[found:], s.value)
			}
		}
		if found > least {
			distance, length, least = looked, found, found
		}
	}
	return distance, length
}
