package compression

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"snugly.dev/go/catalogue"
	"snugly.dev/go/envelope"
)

// ValueType is whose values are compressed.
type ValueType string

// The types of values.
const (
	Strings ValueType = "strings"
	Hashes  ValueType = "hashes"
	Lists   ValueType = "lists"
	Streams ValueType = "streams"
)

var valueTypes = []ValueType{Strings, Hashes, Lists, Streams}

// Options is how a client compresses. The zero value has all defaults. Names and defaults are those of Valkey GLIDE where
// it has them.
type Options struct {
	// Backend is what values are compressed with: envelope.Zstd (default), envelope.LZ4, or envelope.None for readers
	// that go first in a roll-out.
	Backend envelope.Backend
	// CompressionLevel is the backend's level: zstd -131072 to 22, lz4 -128 to 12; below the default faster, above
	// smaller. 0 is the default: 3 for zstd, 0 for lz4. With None it is not looked at.
	CompressionLevel int
	// MinCompressionSize is the length from which on values are compressed, in bytes, from 6. Default 64. Values under
	// 32 bytes never are.
	MinCompressionSize int
	// MaxDecompressedSize is the longest value that is compressed or decoded, in bytes. Default 512 MiB.
	MaxDecompressedSize int
	// ExistingEnvelopes is what becomes of values that are envelopes: envelope.Keep (default), or envelope.Wrap for
	// values that strangers make.
	ExistingEnvelopes envelope.ExistingEnvelopes
	// Checksum makes zstd frames carry a checksum of the value, 4 bytes.
	Checksum bool
	// OnUndecodable is what becomes of envelopes that cannot be read: envelope.Raise (default) gives an
	// *envelope.UndecodableError, envelope.Raw the bytes as they are stored.
	OnUndecodable envelope.OnUndecodable
	// ValueTypes is whose values are compressed. Default: strings only.
	ValueTypes []ValueType

	// UseCatalogue writes values with the dictionaries that the catalogue beside the data has for their keys. It goes
	// with zstd. What others wrote with dictionaries is read in any case. With None it is not looked at.
	UseCatalogue bool
	// Dictionary is one that all values are written with, whatever their keys, instead. The client puts it beside the
	// data, and writes with it while it is there. With None it is for reading only.
	Dictionary *envelope.Dictionary
	// DictionaryPrefix is what the keys of dictionaries begin with. Default "{snugly}".
	DictionaryPrefix string
	// DictionaryRefresh is how often the catalogue is read, and how long a new dictionary is not used, from 100 ms to 24
	// hours: the same for all of a fleet. Default a minute.
	DictionaryRefresh time.Duration
	// DictionaryFolder is where copies of fetched dictionaries are kept. Default: nowhere.
	DictionaryFolder string
	// DictionaryExclude are globs of keys, as those of KEYS, whose values are written without a dictionary.
	DictionaryExclude []string

	// Logger gets warnings about dictionaries, each once. Default slog.Default().
	Logger *slog.Logger
}

func (o *Options) forEnvelopes(dictionaries envelope.Dictionaries) envelope.Options {
	return envelope.Options{
		Backend: o.Backend, CompressionLevel: o.CompressionLevel, MinCompressionSize: o.MinCompressionSize,
		MaxDecompressedSize: o.MaxDecompressedSize, ExistingEnvelopes: o.ExistingEnvelopes, Checksum: o.Checksum,
		OnUndecodable: o.OnUndecodable, Dictionaries: dictionaries,
	}
}

func (o *Options) forCatalogue() catalogue.Options {
	return catalogue.Options{
		IsUsed: o.UseCatalogue && o.Backend != envelope.None, Given: o.Dictionary,
		Prefix: o.DictionaryPrefix, Refresh: o.DictionaryRefresh, Folder: o.DictionaryFolder, Exclude: o.DictionaryExclude, Logger: o.Logger,
	}
}

// valueTypes are those that are compressed.
func (o *Options) valueTypes() ([]ValueType, error) {
	if len(o.ValueTypes) == 0 {
		return []ValueType{Strings}, nil
	}
	for _, each := range o.ValueTypes {
		if !slices.Contains(valueTypes, each) {
			return nil, &envelope.OptionError{Option: "ValueTypes", Value: o.ValueTypes, Allowed: fmt.Sprintf("choose some of %q", valueTypes)}
		}
	}
	return o.ValueTypes, nil
}

// checkDictionaries refuses dictionaries for a backend that has none. Who goes back to None changes nothing else.
func (o *Options) checkDictionaries() error {
	uses := o.UseCatalogue || o.Dictionary != nil
	if uses && o.Backend == envelope.LZ4 {
		return &envelope.OptionError{Option: "Backend", Value: fmt.Sprintf("%q", string(o.Backend)), Allowed: "dictionaries go with zstd only"}
	}
	return nil
}
