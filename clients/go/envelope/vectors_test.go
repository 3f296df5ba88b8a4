package envelope_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

type readerVectors struct {
	Errors       map[envelope.Kind]string
	Dictionaries map[string]struct {
		ID    uint32
		Bytes vectors.Bytes
	}
	Cases []struct {
		Name, Expect string
		Envelope     vectors.Bytes
		Value        vectors.Bytes
		Error        envelope.Kind
		Dictionaries []string
		Options      struct {
			MaxDecompressedSize int `json:"max_decompressed_size"`
		}
	}
}

func readReaderVectors(t testing.TB) readerVectors { return readReaderVectorsOf(t, "envelopes.json") }

// readBlockVectors are those of LZ4 with a dictionary.
func readBlockVectors(t testing.TB) readerVectors {
	return readReaderVectorsOf(t, "lz4_dictionary.json")
}

func readReaderVectorsOf(t testing.TB, file string) readerVectors {
	var read readerVectors
	vectors.Read(t, "vectors/"+file, &read)
	return read
}

// atHand has some dictionaries, and writes with none.
type atHand map[uint32]*envelope.Dictionary

func (a atHand) For(string) *envelope.Dictionary       { return nil }
func (a atHand) AtHand(id uint32) *envelope.Dictionary { return a[id] }
func (a atHand) Fetch(context.Context, uint32) (*envelope.Dictionary, error) {
	return nil, nil
}

func (v readerVectors) dictionaries(t testing.TB, names ...string) atHand {
	t.Helper()
	found := atHand{}
	for _, name := range names {
		found[v.Dictionaries[name].ID] = load(t, v.Dictionaries[name].Bytes)
	}
	return found
}

func load(t testing.TB, content []byte) *envelope.Dictionary {
	t.Helper()
	dictionary, err := envelope.LoadDictionary(content)
	if err != nil {
		t.Fatal(err)
	}
	return dictionary
}

func codec(t testing.TB, options envelope.Options) *envelope.Codec {
	t.Helper()
	made, err := envelope.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAReaderFindsWhatTheVectorSays(t *testing.T) {
	used := map[envelope.Kind]bool{}
	expectVectors(t, readReaderVectors(t), used)
	expectVectors(t, readBlockVectors(t), used)
	if wanted := readReaderVectors(t).Errors; len(used) != len(wanted) {
		t.Errorf("cases for %d of %d kinds of errors", len(used), len(wanted))
	}
}

// expectVectors notes the kinds of errors that are used.
func expectVectors(t *testing.T, read readerVectors, used map[envelope.Kind]bool) {
	for _, each := range read.Cases {
		t.Run(each.Name, func(t *testing.T) {
			reader := codec(t, envelope.Options{
				MaxDecompressedSize: each.Options.MaxDecompressedSize,
				Dictionaries:        read.dictionaries(t, each.Dictionaries...),
			})
			value, err := reader.Decode([]byte("before"), each.Envelope)
			switch each.Expect {
			case "value":
				expectValue(t, value, err, each.Value)
			case "untouched":
				expectValue(t, value, err, each.Envelope)
			case "error":
				used[each.Error] = true
				expectKind(t, err, each.Error)
				if string(value) != "before" {
					t.Errorf("dst is %q after an error", value)
				}
			default:
				t.Fatalf("the vectors expect %q", each.Expect)
			}
		})
	}
}

func expectValue(t *testing.T, value []byte, err error, wanted []byte) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(value, append([]byte("before"), wanted...)) {
		t.Fatalf("%d bytes that are not the %d wanted", len(value), len(wanted)+6)
	}
}

func expectKind(t *testing.T, err error, wanted envelope.Kind) {
	t.Helper()
	var undecodable *envelope.UndecodableError
	if !errors.As(err, &undecodable) {
		t.Fatalf("got %v, wanted an error of kind %s", err, wanted)
	}
	if undecodable.Kind != wanted {
		t.Fatalf("got the kind %s, wanted %s: %v", undecodable.Kind, wanted, err)
	}
}

func TestAWriterDoesWhatTheVectorSays(t *testing.T) {
	type options struct {
		Backend            envelope.Backend
		Level              int
		MinCompressionSize int                        `json:"min_compression_size"`
		ExistingEnvelopes  envelope.ExistingEnvelopes `json:"existing_envelopes"`
	}
	var read struct {
		Defaults options
		Cases    []struct {
			Name, Expect string
			Value        vectors.Bytes
			Options      json.RawMessage
		}
	}
	vectors.Read(t, "vectors/writers.json", &read)
	for _, each := range read.Cases {
		t.Run(each.Name, func(t *testing.T) {
			chosen := read.Defaults
			if each.Options != nil {
				if err := json.Unmarshal(each.Options, &chosen); err != nil {
					t.Fatal(err)
				}
			}
			writer := codec(t, envelope.Options{
				Backend: chosen.Backend, CompressionLevel: chosen.Level,
				MinCompressionSize: chosen.MinCompressionSize, ExistingEnvelopes: chosen.ExistingEnvelopes,
			})
			stored := writer.Encode([]byte("before"), each.Value)[len("before"):]
			switch isSame := bytes.Equal(stored, each.Value); each.Expect {
			case "as_is":
				if !isSame {
					t.Errorf("%d bytes were encoded to %d", len(each.Value), len(stored))
				}
			case "encoded":
				if isSame || !envelope.Is(stored) {
					t.Fatal("the value was not encoded")
				}
				value, err := writer.Decode([]byte("before"), stored)
				expectValue(t, value, err, each.Value)
			default:
				t.Fatalf("the vectors expect %q", each.Expect)
			}
		})
	}
}

func TestDictionariesAreTakenAsTheVectorsSay(t *testing.T) {
	var read struct {
		Refused []struct {
			Name, Error string
			Bytes       vectors.Bytes
		}
		IDs []struct {
			Content vectors.Bytes
			ID      uint32
		}
	}
	vectors.Read(t, "vectors/catalogue.json", &read)
	for _, each := range read.Refused {
		_, err := envelope.LoadDictionary(each.Bytes)
		var refused *envelope.DictionaryError
		if !errors.As(err, &refused) || refused.Kind != each.Error {
			t.Errorf("%s: got %v, wanted %s", each.Name, err, each.Error)
		}
	}
	for _, each := range read.IDs {
		if id := envelope.DictionaryID(each.Content); id != each.ID {
			t.Errorf("got the ID %d, wanted %d", id, each.ID)
		}
	}
	for _, all := range []readerVectors{readReaderVectors(t), readBlockVectors(t)} {
		for name, each := range all.Dictionaries {
			if id := load(t, each.Bytes).ID(); id != each.ID {
				t.Errorf("%s: got the ID %d, wanted %d", name, id, each.ID)
			}
		}
	}
}

func TestTheExamplesOfTheSpecificationHold(t *testing.T) {
	all := readReaderVectors(t)
	reader := codec(t, envelope.Options{Dictionaries: all.dictionaries(t, "profiles", "orders")})
	examples := specificationExamples(t)
	if len(examples) < 10 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, each := range examples {
		stored, err := hex.DecodeString(strings.ReplaceAll(each["envelope"], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		value, err := reader.Decode([]byte("before"), stored)
		switch {
		case each["error"] != "":
			expectKind(t, err, envelope.Kind(each["error"]))
		case each["value"] == "(not an envelope)":
			expectValue(t, value, err, stored)
		default:
			var wanted vectors.Bytes
			if err := json.Unmarshal([]byte(each["value"]), &wanted); err != nil {
				t.Fatal(err)
			}
			expectValue(t, value, err, wanted)
		}
	}
}

// specificationExamples are the blocks of envelope.md that are marked as examples, by the names of their lines.
func specificationExamples(t *testing.T) []map[string]string {
	file, err := os.Open(vectors.Path("envelope.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var examples []map[string]string
	isInside := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, text, isField := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "```example", lines.Text() == "```example-82":
			isInside = true
			examples = append(examples, map[string]string{})
		case lines.Text() == "```":
			isInside = false
		case isInside && isField:
			examples[len(examples)-1][name] = text
		}
	}
	return examples
}
