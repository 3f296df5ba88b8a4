package envelope

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The primes of XXH32 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
const (
	xxhPrime1 = 0x9e3779b1
	xxhPrime2 = 0x85ebca77
	xxhPrime3 = 0xc2b2ae3d
	xxhPrime4 = 0x27d4eb2f
	xxhPrime5 = 0x165667b1

	xxhStripe = 16 // Bytes that the four lanes take together.
)

// xxh32 is the XXH32 of some bytes, with the seed 0.
func xxh32(input []byte) uint32 {
	rest, hash := input, uint32(xxhPrime5)
	if len(rest) >= xxhStripe {
		a, b, c, d := uint32((xxhPrime1+xxhPrime2)&math.MaxUint32), uint32(xxhPrime2), uint32(0), uint32(1<<32-xxhPrime1)
		for ; len(rest) >= xxhStripe; rest = rest[xxhStripe:] {
			a = xxhRound(a, binary.LittleEndian.Uint32(rest))
			b = xxhRound(b, binary.LittleEndian.Uint32(rest[4:]))
			c = xxhRound(c, binary.LittleEndian.Uint32(rest[8:]))
			d = xxhRound(d, binary.LittleEndian.Uint32(rest[12:]))
		}
		hash = bits.RotateLeft32(a, 1) + bits.RotateLeft32(b, 7) + bits.RotateLeft32(c, 12) + bits.RotateLeft32(d, 18)
	}
	hash += uint32(len(input))
	for ; len(rest) >= 4; rest = rest[4:] {
		hash = bits.RotateLeft32(hash+binary.LittleEndian.Uint32(rest)*xxhPrime3, 17) * xxhPrime4
	}
	for _, each := range rest {
		hash = bits.RotateLeft32(hash+uint32(each)*xxhPrime5, 11) * xxhPrime1
	}
	hash = (hash ^ hash>>15) * xxhPrime2
	hash = (hash ^ hash>>13) * xxhPrime3
	return hash ^ hash>>16
}

func xxhRound(lane, input uint32) uint32 {
	return bits.RotateLeft32(lane+input*xxhPrime2, 13) * xxhPrime1
}
