package compression_test

import (
	"encoding/json"
	"testing"
	"time"

	"snugly.dev/go/cache"
	"snugly.dev/go/catalogue"
	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// specified are the options of the specification.
type specified struct {
	Backend             choice                                    `json:"backend"`
	CompressionLevel    map[envelope.Backend]number               `json:"compression_level"`
	MinCompressionSize  number                                    `json:"min_compression_size"`
	MaxDecompressedSize number                                    `json:"max_decompressed_size"`
	MaxReplyBytes       number                                    `json:"max_reply_bytes"`
	ExistingEnvelopes   choice                                    `json:"existing_envelopes"`
	OnUndecodable       choice                                    `json:"on_undecodable"`
	ValueTypes          struct{ Choices []compression.ValueType } `json:"value_types"`
	Exclude             struct{ Default []string }                `json:"exclude"`
	DictionaryPrefix    struct{ Default string }                  `json:"dictionary_prefix"`
	DictionaryRefresh   number                                    `json:"dictionary_refresh"`
}

type choice struct {
	Choices []string
	Default string
}

type number struct{ Least, Most, Default json.Number }

func (n number) whole(of json.Number) int {
	number, _ := of.Int64()
	return int(number)
}

func seconds(of json.Number) time.Duration {
	number, _ := of.Float64()
	return time.Duration(number * float64(time.Second))
}

func TestOptionsAreThoseOfTheSpecification(t *testing.T) {
	var options specified
	vectors.Read(t, "data/options.json", &options)

	taken := func(options compression.Options) bool {
		_, err := compression.New(nil, options)
		return err == nil
	}
	expect := func(options compression.Options, wanted bool) {
		t.Helper()
		if got := taken(options); got != wanted {
			t.Errorf("%+v is taken: %v, wanted %v", options, got, wanted)
		}
	}

	for backend, level := range options.CompressionLevel {
		least, most := level.whole(level.Least), level.whole(level.Most)
		expect(compression.Options{Backend: backend, CompressionLevel: least}, true)
		expect(compression.Options{Backend: backend, CompressionLevel: most}, true)
		expect(compression.Options{Backend: backend, CompressionLevel: least - 1}, false)
		expect(compression.Options{Backend: backend, CompressionLevel: most + 1}, false)
	}
	least := options.MinCompressionSize.whole(options.MinCompressionSize.Least)
	expect(compression.Options{MinCompressionSize: least}, true)
	expect(compression.Options{MinCompressionSize: least - 1}, false)
	expect(compression.Options{MaxDecompressedSize: options.MaxDecompressedSize.whole(options.MaxDecompressedSize.Least)}, true)
	expect(compression.Options{MaxDecompressedSize: -1}, false)
	for _, backend := range options.Backend.Choices {
		expect(compression.Options{Backend: envelope.Backend(backend)}, true)
	}
	for _, existing := range options.ExistingEnvelopes.Choices {
		expect(compression.Options{ExistingEnvelopes: envelope.ExistingEnvelopes(existing)}, true)
	}
	for _, undecodable := range options.OnUndecodable.Choices {
		expect(compression.Options{OnUndecodable: envelope.OnUndecodable(undecodable)}, true)
	}
	expect(compression.Options{ValueTypes: options.ValueTypes.Choices}, true)
	// Every text is a pattern.
	expect(compression.Options{Exclude: []string{"", "lock[", "\\", "\xff"}}, true)
	refresh := options.DictionaryRefresh
	expect(compression.Options{DictionaryRefresh: seconds(refresh.Least)}, true)
	expect(compression.Options{DictionaryRefresh: seconds(refresh.Most)}, true)
	expect(compression.Options{DictionaryRefresh: seconds(refresh.Least) - 1}, false)
	expect(compression.Options{DictionaryRefresh: seconds(refresh.Most) + 1}, false)
}

func TestDefaultsAreThoseOfTheSpecification(t *testing.T) {
	var options specified
	vectors.Read(t, "data/options.json", &options)
	for name, pair := range map[string][2]any{
		"Backend":             {string(envelope.Zstd), options.Backend.Default},
		"MinCompressionSize":  {envelope.DefaultMinCompressionSize, options.MinCompressionSize.whole(options.MinCompressionSize.Default)},
		"MaxDecompressedSize": {envelope.DefaultMaxDecompressedSize, options.MaxDecompressedSize.whole(options.MaxDecompressedSize.Default)},
		"cache.MaxReplyBytes": {cache.DefaultMaxReplyBytes, options.MaxReplyBytes.whole(options.MaxReplyBytes.Default)},
		"MaxReplyBytes":       {compression.DefaultMaxReplyBytes, options.MaxReplyBytes.whole(options.MaxReplyBytes.Default)},
		"ExistingEnvelopes":   {string(envelope.Keep), options.ExistingEnvelopes.Default},
		"OnUndecodable":       {string(envelope.Raise), options.OnUndecodable.Default},
		"Exclude":             {len(compression.Options{}.Exclude), len(options.Exclude.Default)},
		"DictionaryPrefix":    {catalogue.DefaultPrefix, options.DictionaryPrefix.Default},
		"DictionaryRefresh":   {catalogue.DefaultRefresh, seconds(options.DictionaryRefresh.Default)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v by default, wanted %v", name, pair[0], pair[1])
		}
	}
}
