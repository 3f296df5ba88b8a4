package envelope_test

import (
	"bytes"
	"fmt"
	"testing"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// writers are codecs that compress, in every way there is.
func writers(t *testing.T) map[string]*envelope.Codec {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	return map[string]*envelope.Codec{
		"zstd":                   codec(t, envelope.Options{}),
		"lz4":                    codec(t, envelope.Options{Backend: envelope.LZ4}),
		"zstd with a dictionary": codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)}),
		"lz4 with a dictionary":  codec(t, envelope.Options{Backend: envelope.LZ4, Dictionaries: envelope.Only(dictionary)}),
	}
}

// encodedOf counts those that become envelopes.
func encodedOf(tool *envelope.Codec, values ...[]byte) (encoded int) {
	for _, value := range values {
		if _, isEncoded := tool.AppendEnvelope(nil, "key", value); isEncoded {
			encoded++
		}
	}
	return encoded
}

// noises are so many random values of a length.
func noises(count, size int) [][]byte {
	made := make([][]byte, count)
	for seed := range made {
		made[seed] = vectors.Noise(uint64(seed), size)
	}
	return made
}

func TestRandomValuesAreHardlyEverTried(t *testing.T) {
	for name, tool := range writers(t) {
		for _, size := range []int{1000, 20_000} {
			before := tool.Statistics()
			if encoded := encodedOf(tool, noises(1000, size)...); encoded > 0 {
				t.Errorf("%s: %d random values of %d bytes became envelopes", name, encoded, size)
			}
			counted := tool.Statistics()
			tried, left := counted.SkippedNoGain-before.SkippedNoGain, counted.SkippedCompressed-before.SkippedCompressed
			if tried < 1 || tried > 20 || tried+left != 1000 {
				t.Errorf("%s: of 1,000 random values of %d bytes %d were tried and %d left alone", name, size, tried, left)
			}
		}
	}
}

func TestCompressedFilesAreLeftAloneFromTheFirstOn(t *testing.T) {
	for name, tool := range writers(t) {
		for _, start := range []string{"\x1f\x8b\x08", "\x89PNG\r\n\x1a\n", "PK\x03\x04", "\xff\xd8\xff"} {
			encodedOf(tool, append([]byte(start), vectors.Noise(1, 5000)...))
		}
		if counted := tool.Statistics(); counted.SkippedCompressed != 4 || counted.None.EncodedValues != 4 {
			t.Errorf("%s: counted %+v", name, counted)
		}
	}
}

func TestTextThatStartsLikeACompressedFileIsCompressed(t *testing.T) {
	for name, tool := range writers(t) {
		for _, start := range []string{"GIF89a is a format. ", "BZh is how bzip2 starts. ", "ID3, PK, OggS, wOFF. ", "RIFF....WEBP "} {
			if encodedOf(tool, append([]byte(start), page...)) != 1 {
				t.Errorf("%s: %q was left alone", name, start)
			}
		}
	}
}

func TestRandomBlocksThatRepeatAreFoundAmongThoseThatDoNot(t *testing.T) {
	for name, tool := range writers(t) {
		encodedOf(tool, noises(300, 20_000)...)
		var repeated [][]byte
		for _, block := range noises(300, 2000) {
			repeated = append(repeated, bytes.Repeat(block, 10))
		}
		if encoded := encodedOf(tool, repeated...); encoded < 300-257 {
			t.Errorf("%s: %d of 300 were found", name, encoded)
		}
	}
}

func TestShortJSONThatShrinksIsCompressedWhateverStandsBetween(t *testing.T) {
	for name, tool := range writers(t) {
		for round, noise := range noises(900, 300) {
			encodedOf(tool, noise)
			if round%9 > 0 {
				continue
			}
			json := fmt.Appendf(nil, `{"items":[{"id":%d,"name":"first item","active":true},{"id":%d,"name":"second item","active":true},`+
				`{"id":%d,"name":"third item","active":false},{"id":%d,"name":"fourth item","active":true},{"id":%d,"name":"fifth item","active":true}]}`,
				round, round+1, round+2, round+3, round+4)
			if encodedOf(tool, json) != 1 {
				t.Errorf("%s: value %d of %d bytes was left alone", name, round, len(json))
			}
		}
	}
}

func TestWhatWouldBeTakenForAnEnvelopeIsEncodedThoughItsLikesDoNotShrink(t *testing.T) {
	for name, tool := range writers(t) {
		for _, noise := range noises(300, 1000) {
			encodedOf(tool, noise)
			copy(noise, "\x00\x01\x02\x00\x1f")
			if encodedOf(tool, noise) != 1 {
				t.Errorf("%s: a value with the start of an envelope was left alone", name)
			}
		}
	}
}
