package envelope_test

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// fuzzedLimit is small, so that a value that is too long is found.
const fuzzedLimit = 1 << 20

func FuzzDecode(f *testing.F) {
	read, blocks := readReaderVectors(f), readBlockVectors(f)
	for _, each := range append(read.Cases, blocks.Cases...) {
		if len(each.Envelope) < 4096 {
			f.Add([]byte(each.Envelope))
		}
	}
	known := read.dictionaries(f, "profiles", "orders")
	maps.Copy(known, blocks.dictionaries(f, "long"))
	tool := codec(f, envelope.Options{MaxDecompressedSize: fuzzedLimit, Dictionaries: known})
	f.Fuzz(func(t *testing.T, stored []byte) {
		given := bytes.Clone(stored)
		value, err := tool.Decode(nil, stored)
		if !bytes.Equal(given, stored) {
			t.Fatal("what was given was changed")
		}
		var undecodable *envelope.UndecodableError
		if err != nil && (!errors.As(err, &undecodable) || value != nil) {
			t.Fatalf("%v, and %d bytes", err, len(value))
		}
		header, isEnvelope := envelope.Inspect(stored)
		switch {
		case isEnvelope != envelope.Is(stored):
			t.Fatal("Inspect and Is differ")
		case !isEnvelope && !bytes.Equal(value, stored):
			t.Fatal("what is no envelope was changed")
		case isEnvelope && err == nil && len(value) > fuzzedLimit:
			t.Fatalf("%d bytes, over the limit", len(value))
		case isEnvelope && err == nil && header.HasSize && uint64(len(value)) != header.Size:
			t.Fatalf("%d bytes where %d are claimed", len(value), header.Size)
		}
		again, err := tool.Decode(nil, tool.Encode(nil, value))
		if err == nil && !envelope.Is(value) && !bytes.Equal(again, value) {
			t.Fatal("the value was not read back")
		}
	})
}

func FuzzBlockWithDictionary(f *testing.F) {
	read := readBlockVectors(f)
	content := read.Dictionaries["profiles"].Bytes
	for _, level := range []int{-128, 0, 1, 12} {
		f.Add([]byte("what values share"), []byte("values share what values share, and more"), level)
		f.Add(vectors.Noise(1, 100), vectors.Noise(1, 200), level)
		f.Add([]byte{}, make([]byte, 300), level)
		f.Add(bytes.Repeat(page, 40), page, level)
	}
	f.Fuzz(func(t *testing.T, end, value []byte, level int) {
		dictionary, err := envelope.LoadDictionary(withEnd(content, end))
		if err != nil {
			return // It is too long.
		}
		tool := codec(t, envelope.Options{
			Backend: envelope.LZ4, CompressionLevel: min(max(level, -128), 12), MinCompressionSize: 6,
			ExistingEnvelopes: envelope.Wrap, Dictionaries: envelope.Only(dictionary),
		})
		read, err := tool.Decode(nil, tool.Encode(nil, value))
		if err != nil || !bytes.Equal(read, value) {
			t.Fatalf("%d bytes behind %d became %d: %v", len(value), len(dictionary.Bytes()), len(read), err)
		}
	})
}

func FuzzLoadDictionary(f *testing.F) {
	for _, each := range readReaderVectors(f).Dictionaries {
		f.Add([]byte(each.Bytes))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		// The ID is made to be right, so that what the dictionary holds is looked at.
		if len(content) > 8 {
			content = bytes.Clone(content)
			id := envelope.DictionaryID(content[8:])
			copy(content[4:], []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
		}
		dictionary, err := envelope.LoadDictionary(content)
		if err != nil {
			return
		}
		tool := codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)})
		value, err := tool.Decode(nil, tool.Encode(nil, page))
		if err != nil || !bytes.Equal(value, page) {
			t.Fatalf("the value was not read back: %v", err)
		}
	})
}
