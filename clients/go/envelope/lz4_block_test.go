package envelope

import (
	"bytes"
	"math"
	"testing"

	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"

	"snugly.dev/go/internal/vectors"
)

// blockEncoder writes the block of a value behind a window that it knows; 0 if there is too little room.
type blockEncoder func(block, value []byte) int

func blockEncoders(window []byte) map[string]blockEncoder {
	table, chains := newWindowTable(window), newWindowChains(window)
	return map[string]blockEncoder{
		"level 0":    func(block, value []byte) int { return table.encode(block, value, 1) },
		"level -128": func(block, value []byte) int { return table.encode(block, value, 128) },
		"level 1":    func(block, value []byte) int { return chains.encode(block, value, int(lz4Depths[0])) },
		"level 12":   func(block, value []byte) int { return chains.encode(block, value, int(lz4Depths[11])) },
	}
}

// drawWindow draws a window of any length, from the shortest dictionary on: noise, runs, and what comes again and again.
func drawWindow(t *rapid.T) []byte {
	length := rapid.SampledFrom([]int{8, 9, 15, 16, 17, 100, 4000, windowLen - 1, windowLen}).Draw(t, "window")
	unit := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "unit")
	window := vectors.Noise(rapid.Uint64().Draw(t, "seed"), length)
	for at := rapid.IntRange(0, length).Draw(t, "from"); at < length; at += len(unit) {
		copy(window[at:], unit)
	}
	return window
}

// drawBehind draws a value of which parts stand in the window, at its very end and start, and in the value itself.
func drawBehind(t *rapid.T, window []byte) []byte {
	var value []byte
	for range rapid.IntRange(0, 8).Draw(t, "parts") {
		length := rapid.SampledFrom([]int{0, 1, 3, 4, 5, 6, 11, 12, 13, 14, 16, 19, 60, 300, 5000, 70_000}).Draw(t, "length")
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			value = append(value, vectors.Noise(rapid.Uint64().Draw(t, "noise"), min(length, 300))...)
		case 1:
			value = append(value, bytes.Repeat([]byte{rapid.Byte().Draw(t, "run")}, length)...)
		case 2:
			value = append(value, window[len(window)-min(length, len(window)):]...)
		case 3:
			from := rapid.IntRange(0, len(window)).Draw(t, "from")
			value = append(value, window[from:min(from+length, len(window))]...)
		case 4:
			from := rapid.IntRange(0, len(value)).Draw(t, "of itself")
			value = append(value, value[from:min(from+length, len(value))]...)
		}
	}
	return value
}

// expectBlock wants a block that the library reads, and that keeps to what the format says of the end.
func expectBlock(t interface{ Fatalf(string, ...any) }, name string, block, window, value []byte) {
	decoded := make([]byte, len(value))
	length, err := lz4.UncompressBlockWithDict(block, decoded, window)
	if err != nil || length != len(value) || !bytes.Equal(decoded, value) {
		t.Fatalf("%s: %d bytes behind %d became a block of %d, which gives %d: %v", name, len(value), len(window), len(block), length, err)
	}
	literals, matchAt := endOf(block)
	if matchAt >= 0 && (literals < lastLiterals || matchAt > len(value)-12) {
		t.Fatalf("%s: of %d bytes the last match starts at %d, and %d literals follow", name, len(value), matchAt, literals)
	}
}

// endOf gives how many literals stand at the end of a good block, and where the value's last match starts; -1 if there is none.
func endOf(block []byte) (literals, matchAt int) {
	length := func(short byte) int {
		all := int(short)
		for extra := byte(255); short == 15 && extra == 255; all += int(extra) {
			extra, block = block[0], block[1:]
		}
		return all
	}
	matchAt = -1
	for at := 0; ; {
		token := block[0]
		block = block[1:]
		literals = length(token >> 4)
		at += literals
		if block = block[literals:]; len(block) == 0 {
			return literals, matchAt
		}
		matchAt, block = at, block[2:]
		at += length(token&15) + leastMatch
	}
}

func TestABlockGivesTheValueThatStandsBehindTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := drawWindow(t)
		value := drawBehind(t, window)
		block := make([]byte, lz4.CompressBlockBound(len(value)))
		for name, encode := range blockEncoders(window) {
			length := encode(block, value)
			if length == 0 {
				t.Fatalf("%s: no room for %d bytes", name, len(value))
			}
			expectBlock(t, name, block[:length], window, value)
			// Less room is never too much, and what is behind it stays.
			room := rapid.IntRange(0, length+20).Draw(t, "room")
			small := bytes.Repeat([]byte{0xa5}, room+32)
			if length := encode(small[:room], value); length > 0 {
				expectBlock(t, name, small[:length], window, value)
			}
			if !bytes.Equal(small[room:], bytes.Repeat([]byte{0xa5}, 32)) {
				t.Fatalf("%s: more than the room was written to", name)
			}
		}
	})
}

func TestABlockTakesTheMatchesOfTheWindow(t *testing.T) {
	window := vectors.Noise(1, windowLen)
	for name, value := range map[string][]byte{
		// A match cannot reach the first byte of the longest window from any place.
		"its start":                      append(bytes.Clone(window[1:1000]), "the end of it"...),
		"its end":                        append(bytes.Clone(window[windowLen-1000:]), "the end of it"...),
		"its end, and on into the value": bytes.Repeat(window[windowLen-100:], 20),
		"bytes that differ": func() []byte {
			value := bytes.Clone(window[30_000:31_000])
			for at := 50; at < len(value); at += 100 {
				value[at]++
			}
			return value
		}(),
	} {
		for level, encode := range blockEncoders(window) {
			block := make([]byte, lz4.CompressBlockBound(len(value)))
			length := encode(block, value)
			expectBlock(t, level, block[:length], window, value)
			if most := len(value) / 8; length > most && level != "level -128" {
				t.Errorf("%s, %s: %d bytes take %d, more than %d", name, level, len(value), length, most)
			}
		}
	}
}

func TestWhatIsBeyondTheReachOfAMatchIsNoMatch(t *testing.T) {
	window := vectors.Noise(1, windowLen)
	// The same bytes stand at the window's start, 64 KiB and more before the place where they come again.
	value := append(bytes.Repeat([]byte("-"), 1000), window[:900]...)
	value = append(append(value, vectors.Noise(2, 70_000)...), value[900:2000]...)
	for level, encode := range blockEncoders(window) {
		block := make([]byte, lz4.CompressBlockBound(len(value)))
		expectBlock(t, level, block[:encode(block, value)], window, value)
	}
}

func TestPlacesOfEarlierValuesAreNoMatchesWhenTheyBeginAnew(t *testing.T) {
	window := vectors.Noise(1, 100)
	value := bytes.Repeat(vectors.Noise(2, 500), 4)
	block := make([]byte, lz4.CompressBlockBound(len(value)))
	table, chains := newWindowTable(window), newWindowChains(window)
	for _, next := range []uint32{0, 1, math.MaxUint32 - 5000, math.MaxUint32 - 2001, math.MaxUint32 - 2000, math.MaxUint32 - 1999, math.MaxUint32} {
		usedTable, usedChains := valueTable{next: next}, valueChains{next: next}
		for range 4 {
			valueTables.Put(&usedTable)
			expectBlock(t, "table", block[:table.encode(block, value, 1)], window, value)
			chainsOfValues.Put(&usedChains)
			expectBlock(t, "chains", block[:chains.encode(block, value, 8)], window, value)
			value = append(value[1:], value[0])
		}
	}
}
