package compression

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"snugly.dev/go/catalogue"
	"snugly.dev/go/envelope"
)

// ValueType is a type of keys whose values are compressed.
type ValueType string

// The types of values.
const (
	Strings ValueType = "strings"
	Hashes  ValueType = "hashes"
	Lists   ValueType = "lists"
	Streams ValueType = "streams"
)

var valueTypes = []ValueType{Strings, Hashes, Lists, Streams}

const (
	// DefaultMaxReplyBytes is that of Options.MaxReplyBytes.
	DefaultMaxReplyBytes = 1 << 30
	// Unlimited is for replies that may be restored to any number of bytes.
	Unlimited = -1
)

// Options are those of a client that compresses. The zero value has all defaults. Names and defaults are those of
// Valkey GLIDE where it has them.
type Options struct {
	// Backend compresses values: envelope.Zstd (default), envelope.LZ4, or envelope.None for readers
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
	// ExistingEnvelopes says what becomes of values that are envelopes: envelope.Keep (default), or envelope.Wrap for
	// values that strangers make.
	ExistingEnvelopes envelope.ExistingEnvelopes
	// Checksum makes zstd frames carry a checksum of the value, 4 bytes.
	Checksum bool
	// MaxReplyBytes is the most that the values of one reply are restored to together, in bytes: of a command, and of
	// all that are sent as one pipeline or transaction. What goes beyond is an *envelope.UndecodableError of the kind
	// too_large. Default 1 GiB, or Unlimited.
	MaxReplyBytes int
	// OnUndecodable says what becomes of envelopes that cannot be read: envelope.Raise (default) gives an
	// *envelope.UndecodableError, envelope.Raw the bytes as they are stored, envelope.Miss what the library gives for a
	// value that is not there.
	OnUndecodable envelope.OnUndecodable
	// Exclude are globs of keys, as those of KEYS, whose values are sent as they are, unless they look like envelopes: for
	// locks and tokens that scripts in the server compare. What was compressed before is still read. Default: none.
	Exclude []string
	// ValueTypes are those whose values are compressed. Default: strings only.
	ValueTypes []ValueType

	// UseCatalogue writes values with the dictionaries that the catalogue beside the data has for their keys. With LZ4 it
	// says that all readers know backend 82. What others wrote with dictionaries is read in any case. With None it is not
	// looked at.
	UseCatalogue bool
	// Dictionary is one that all values are written with, whatever their keys, instead. The client puts it beside the
	// data, and writes with it while it is there. With LZ4 it says that all readers know backend 82. With None it is for
	// reading only.
	Dictionary *envelope.Dictionary
	// DictionaryPrefix is the beginning of the keys of dictionaries. Default "{snugly}".
	DictionaryPrefix string
	// DictionaryDatabase is the number of the database that dictionaries live in, for clients of several databases that
	// share them. Default, nil: the client's own. A cluster has one database.
	DictionaryDatabase *int
	// DictionaryRefresh is the time between two readings of the catalogue, for which a new dictionary is not used, from
	// 100 ms to 24 hours: the same for all of a fleet. Default a minute.
	DictionaryRefresh time.Duration
	// DictionaryFolder is the folder of the copies of fetched dictionaries. Default: there are none.
	DictionaryFolder string
	// DictionaryExclude are globs of keys, as those of KEYS, whose values are written without a dictionary.
	DictionaryExclude []string

	// Logger gets warnings: about dictionaries, each once, and about values that OnUndecodable makes a miss, at most one a
	// minute. Default slog.Default().
	Logger *slog.Logger
}

// budget is that of one reply. It returns an *envelope.OptionError for what cannot be.
func (o *Options) budget() (envelope.Budget, error) {
	switch {
	case o.MaxReplyBytes == Unlimited:
		return envelope.Unlimited(), nil
	case o.MaxReplyBytes < 0:
		return envelope.Budget{}, &envelope.OptionError{
			Option: "MaxReplyBytes", Value: o.MaxReplyBytes, Allowed: "it is a number of bytes from 1, or Unlimited",
		}
	}
	return envelope.Budget{Left: cmp.Or(o.MaxReplyBytes, DefaultMaxReplyBytes)}, nil
}

func (o *Options) forEnvelopes(dictionaries envelope.Dictionaries) envelope.Options {
	return envelope.Options{
		Backend: o.Backend, CompressionLevel: o.CompressionLevel, MinCompressionSize: o.MinCompressionSize,
		MaxDecompressedSize: o.MaxDecompressedSize, ExistingEnvelopes: o.ExistingEnvelopes, Checksum: o.Checksum,
		Exclude: o.Exclude, OnUndecodable: o.OnUndecodable, Dictionaries: dictionaries,
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

// Database is a number for Options.DictionaryDatabase.
func Database(number int) *int { return &number }

// checkDatabase refuses a number that no database has.
func (o *Options) checkDatabase() error {
	if o.DictionaryDatabase != nil && *o.DictionaryDatabase < 0 {
		return &envelope.OptionError{Option: "DictionaryDatabase", Value: *o.DictionaryDatabase, Allowed: "it is the number of a database, from 0"}
	}
	return nil
}
