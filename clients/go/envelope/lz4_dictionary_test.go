package envelope_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// windowLen is how much of a dictionary's end a block can reach, in bytes.
const windowLen = 1 << 16

// blockEnvelope is an envelope of LZ4 with a dictionary, whatever its block holds.
func blockEnvelope(dictionary, length, checksum uint32, block ...byte) []byte {
	made := []byte("\x00\x01\x02\x00\x82")
	for _, field := range []uint32{dictionary, length, checksum} {
		made = binary.LittleEndian.AppendUint32(made, field)
	}
	return append(made, block...)
}

// withEnd is a dictionary that ends with more bytes than another one, under the ID of its content.
func withEnd(content, end []byte) []byte {
	made := append(bytes.Clone(content), end...)
	binary.LittleEndian.PutUint32(made[4:], envelope.DictionaryID(made[8:]))
	return made
}

// hello is five letters, and their checksum.
var hello, helloChecksum = []byte("\x50hello"), uint32(0xfb0077f9)

// asked counts the dictionaries that are fetched, of which there are none.
type asked struct {
	atHand
	times *int
}

func (a asked) Fetch(context.Context, uint32) (*envelope.Dictionary, error) {
	*a.times++
	return nil, nil
}

func TestABlocksLengthsAreLookedAtBeforeItsDictionaryIsFetched(t *testing.T) {
	const id = 1348745366
	for name, each := range map[string]struct {
		stored  []byte
		fetches int
		kind    envelope.Kind
	}{
		"all is well":       {blockEnvelope(id, 5, helloChecksum, hello...), 1, envelope.DictionaryMissing},
		"over the limit":    {blockEnvelope(id, 1001, helloChecksum, hello...), 0, envelope.TooLarge},
		"out of reach":      {blockEnvelope(id, 256, helloChecksum, 0), 0, envelope.Corrupt},
		"no block":          {blockEnvelope(id, 0, 0), 0, envelope.Corrupt},
		"a reserved ID":     {blockEnvelope(32767, 5, helloChecksum, hello...), 0, envelope.Corrupt},
		"no more than half": {blockEnvelope(id, 5, helloChecksum)[:11], 0, envelope.Corrupt},
	} {
		times := 0
		reader := codec(t, envelope.Options{MaxDecompressedSize: 1000, Dictionaries: asked{times: &times}})
		if needed := reader.Needs(each.stored); (needed == id) != (each.fetches == 1) {
			t.Errorf("%s: it needs the dictionary %d", name, needed)
		}
		_, err := reader.Decode(nil, each.stored)
		expectKind(t, err, each.kind)
		if times != each.fetches {
			t.Errorf("%s: a dictionary was fetched %d times", name, times)
		}
	}
}

func TestAWrongChecksumIsToldWithDictionarySizesAndKey(t *testing.T) {
	dictionary := load(t, readBlockVectors(t).Dictionaries["profiles"].Bytes)
	reader := codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)})
	value, err := reader.DecodeFor(context.Background(), []byte("before"), "user:1", blockEnvelope(dictionary.ID(), 5, 7, hello...))
	expectKind(t, err, envelope.Corrupt)
	wanted := `cannot decode an envelope of 23 bytes, backend 82, at key "user:1": a lz4_dictionary payload of 18 bytes is corrupt: ` +
		`with the dictionary 1348745366 and a value of 5 bytes claimed, it decodes to a value with the checksum fb0077f9 where 00000007 is stated`
	if err.Error() != wanted || string(value) != "before" {
		t.Errorf("got %q and %v", value, err)
	}
}

func TestAnotherDictionaryGivesNoOtherValue(t *testing.T) {
	read := readBlockVectors(t)
	profiles, long := load(t, read.Dictionaries["profiles"].Bytes), load(t, read.Dictionaries["long"].Bytes)
	// What is at hand under the ID of the one is the other.
	reader := codec(t, envelope.Options{Dictionaries: atHand{profiles.ID(): long, long.ID(): profiles}})
	right := codec(t, envelope.Options{Dictionaries: atHand{profiles.ID(): profiles, long.ID(): long}})
	differing := 0
	for _, each := range read.Cases {
		if each.Expect != "value" || len(each.Dictionaries) != 1 {
			continue
		}
		wanted, err := right.Decode(nil, each.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		value, err := reader.Decode(nil, each.Envelope)
		if err == nil && !bytes.Equal(value, wanted) {
			t.Errorf("%s: another value", each.Name)
		}
		if err != nil {
			expectKind(t, err, envelope.Corrupt)
			differing++
		}
	}
	if differing < 5 {
		t.Errorf("only %d values need their dictionary", differing)
	}
}

func TestWhatABlockHeaderSaysIsTold(t *testing.T) {
	header, ok := envelope.Inspect(blockEnvelope(1348745366, 5, helloChecksum, hello...))
	wanted := envelope.Header{Backend: 0x82, Name: "lz4_dictionary", Size: 5, HasSize: true, Dictionary: 1348745366}
	if !ok || header != wanted {
		t.Errorf("got %+v", header)
	}
	header, ok = envelope.Inspect([]byte("\x00\x01\x02\x00\x82cut"))
	if !ok || header != (envelope.Header{Backend: 0x82, Name: "lz4_dictionary"}) {
		t.Errorf("got %+v of what is cut", header)
	}
}

func TestAWellFormedBlockIsKeptAndAnotherIsEncoded(t *testing.T) {
	writer := codec(t, envelope.Options{MaxDecompressedSize: 1000})
	for name, each := range map[string]struct {
		stored []byte
		isKept bool
	}{
		"well-formed":    {blockEnvelope(32768, 5, 0, hello...), true},
		"a reserved ID":  {blockEnvelope(32767, 5, 0, hello...), false},
		"no block":       {blockEnvelope(32768, 0, 0), false},
		"over the limit": {blockEnvelope(32768, 1001, 0, hello...), false},
		"out of reach":   {blockEnvelope(32768, 256, 0, 0), false},
	} {
		if stored := writer.Encode(nil, each.stored); bytes.Equal(stored, each.stored) != each.isKept {
			t.Errorf("%s: %x became %x", name, each.stored, stored)
		}
	}
}

// sequence is a part of a block: bytes as they are, and then so many that stand at a distance; none at the end.
type sequence struct {
	literals          []byte
	distance, matched int
}

func (s sequence) appendTo(block []byte) []byte {
	token := len(block)
	extra := func(block []byte, length, shift int) []byte {
		block[token] |= byte(min(length, 15)) << shift
		for length -= 15; length >= 0; length -= 255 {
			block = append(block, byte(min(length, 255)))
		}
		return block
	}
	block = append(extra(append(block, 0), len(s.literals), 4), s.literals...)
	if s.matched == 0 {
		return block
	}
	return extra(binary.LittleEndian.AppendUint16(block, uint16(s.distance)), s.matched-4, 0)
}

// mostPlain is the longest value that is decoded plainly, in bytes.
const mostPlain = 1 << 16

// decodedPlainly decodes a block byte by byte; nil if it follows no rules. It stands for the format, whatever a library makes
// of it.
func decodedPlainly(block, window []byte) []byte {
	from := bytes.NewReader(block)
	next := func() int {
		read, err := from.ReadByte()
		if err != nil {
			return -1
		}
		return int(read)
	}
	length := func(short int) int {
		for extra := 255; short >= 15 && extra == 255; short += extra {
			if extra = next(); extra < 0 {
				return mostPlain + 1
			}
		}
		return short
	}
	made := slices.Clone(window)
	most := len(window) + mostPlain
	for {
		token := next()
		if token < 0 {
			return nil
		}
		literals := length(token >> 4)
		if literals > from.Len() || len(made)+literals > most {
			return nil
		}
		for range literals {
			made = append(made, byte(next()))
		}
		if from.Len() == 0 {
			if token&15 > 0 {
				return nil
			}
			return made[len(window):]
		}
		distance := next() | next()<<8
		matched := length(token&15) + 4
		if distance <= 0 || distance > len(made) || len(made)+matched > most {
			return nil
		}
		for range matched {
			made = append(made, made[len(made)-distance])
		}
	}
}

// drawBlock draws what may be a block: sequences of any lengths and distances, damaged and cut at times.
func drawBlock(t *rapid.T) []byte {
	var block []byte
	lengths := rapid.SampledFrom([]int{0, 1, 7, 14, 15, 16, 17, 33, 269, 270, 271, 600})
	distances := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 100, 373, 374, 375, 700, 65_000, 65_535})
	for range rapid.IntRange(0, 6).Draw(t, "sequences") {
		literals := vectors.Noise(uint64(len(block)), lengths.Draw(t, "literals"))
		block = sequence{literals, distances.Draw(t, "distance"), 4 + lengths.Draw(t, "matched")}.appendTo(block)
	}
	block = sequence{literals: vectors.Noise(1, lengths.Draw(t, "last literals"))}.appendTo(block)
	if rapid.IntRange(0, 4).Draw(t, "damaged") == 0 {
		block[rapid.IntRange(0, len(block)-1).Draw(t, "where")] = rapid.Byte().Draw(t, "damage")
	}
	if rapid.IntRange(0, 4).Draw(t, "cut") == 0 {
		block = block[:rapid.IntRange(1, len(block)).Draw(t, "left")]
	}
	return block
}

func TestABlockGivesWhatTheFormatSaysOrAnError(t *testing.T) {
	read := readBlockVectors(t)
	var dictionaries []*envelope.Dictionary
	for _, name := range []string{"profiles", "long"} {
		dictionaries = append(dictionaries, load(t, read.Dictionaries[name].Bytes))
	}
	good := 0
	rapid.Check(t, func(t *rapid.T) {
		dictionary := rapid.SampledFrom(dictionaries).Draw(t, "dictionary")
		reader, err := envelope.New(envelope.Options{Dictionaries: envelope.Only(dictionary)})
		if err != nil {
			t.Fatal(err)
		}
		block := drawBlock(t)
		content := dictionary.Bytes()
		wanted := decodedPlainly(block, content[max(0, len(content)-windowLen):])
		claimed := len(wanted)
		if wanted == nil {
			claimed = rapid.IntRange(0, 1000).Draw(t, "claimed")
		}
		stored := blockEnvelope(dictionary.ID(), uint32(claimed), envelope.XXH32(wanted), block...)
		value, err := reader.Decode(nil, stored)
		switch {
		case err != nil && wanted != nil:
			t.Fatal(err)
		case err == nil && !bytes.Equal(value, wanted):
			t.Fatalf("%d bytes that are not the %d of the format", len(value), len(wanted))
		case wanted == nil:
			return
		}
		good++
		for _, other := range []int{claimed - 1, claimed + 1} {
			if other < 0 {
				continue
			}
			stored := blockEnvelope(dictionary.ID(), uint32(other), envelope.XXH32(wanted), block...)
			if value, err := reader.Decode(nil, stored); err == nil || value != nil {
				t.Fatalf("%d bytes where %d were claimed", len(value), other)
			}
		}
	})
	if good == 0 {
		t.Error("no block was good")
	}
}

func TestWhatIsReadWithAnyDictionaryIsWhatWasWritten(t *testing.T) {
	content := readBlockVectors(t).Dictionaries["profiles"].Bytes
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "part")
		length := rapid.SampledFrom([]int{0, 1, 100, 5000, windowLen, windowLen + 1, 200_000}).Draw(t, "length")
		end := append(vectors.Noise(rapid.Uint64().Draw(t, "seed"), length), part...)
		dictionary, err := envelope.LoadDictionary(withEnd(content, end))
		if err != nil {
			t.Fatal(err)
		}
		tool, err := envelope.New(envelope.Options{
			Backend: envelope.LZ4, CompressionLevel: rapid.IntRange(-128, 12).Draw(t, "level"), ExistingEnvelopes: envelope.Wrap,
			Dictionaries: envelope.Only(dictionary),
		})
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, len(end)).Draw(t, "from")
		value := slices.Concat(part, end[from:min(from+2000, len(end))], drawValue(t), part)
		stored := tool.Encode([]byte("before"), value)[len("before"):]
		if len(stored) > len(value) && !envelope.Is(value) {
			t.Fatalf("%d bytes grew to %d", len(value), len(stored))
		}
		read, err := tool.Decode([]byte("before"), stored)
		if err != nil || !bytes.Equal(read[len("before"):], value) {
			t.Fatalf("%d bytes were stored as %d and not read back: %v", len(value), len(stored), err)
		}
		// Nobody takes one byte for another.
		if envelope.Is(stored) && stored[4] == 0x82 {
			stored[rapid.IntRange(9, len(stored)-1).Draw(t, "damaged")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			if read, err := tool.Decode(nil, stored); err == nil && !bytes.Equal(read, value) {
				t.Fatalf("damage became a value of %d bytes", len(read))
			}
		}
	})
}
