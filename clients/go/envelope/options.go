package envelope

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Backend is the compression of new values. Every codec reads all of them.
type Backend string

const (
	// Zstd is small. Levels -131072 to 22, default 3.
	Zstd Backend = "zstd"
	// LZ4 is fast. Levels -128 to 12, default 0.
	LZ4 Backend = "lz4"
	// None compresses nothing and reads everything: for readers that go first in a roll-out.
	None Backend = "none"
)

// ExistingEnvelopes says what becomes of a value that is a well-formed envelope before it is written.
type ExistingEnvelopes string

const (
	// Keep sends it as it is, so that nothing is compressed twice.
	Keep ExistingEnvelopes = "keep"
	// Wrap encodes it like any other value, so that it is read back as it was: for values that strangers make.
	Wrap ExistingEnvelopes = "wrap"
)

// OnUndecodable says what a reader gets for an envelope that cannot be read.
type OnUndecodable string

const (
	// Raise gives an *UndecodableError.
	Raise OnUndecodable = "raise"
	// Raw gives the bytes as they are stored, and no error.
	Raw OnUndecodable = "raw"
	// Miss gives what a value gives that is not there: for caches. A codec has nothing of that kind; it returns the
	// *UndecodableError, of which its client makes a miss.
	Miss OnUndecodable = "miss"
)

const (
	// DefaultMinCompressionSize is that of Options.MinCompressionSize, in bytes.
	DefaultMinCompressionSize = 64
	// DefaultMaxDecompressedSize is that of Options.MaxDecompressedSize, in bytes: the longest value that Redis and
	// Valkey store.
	DefaultMaxDecompressedSize = 512 << 20

	// DefaultWindow is that of Options.Window, in bytes.
	DefaultWindow = 1 << 20

	leastWindow, mostWindow = 1 << 10, 8 << 20
	leastMinCompressionSize = 6
	// No value shorter than this is compressed, whatever the option: numbers stay numbers.
	leastCompressed = 32
	// Greatest length that an LZ4 payload can claim, and a slice can hold.
	mostBytes = min(math.MaxUint32, math.MaxInt)
)

// Options are those of a codec. The zero value has all defaults. Names and defaults are those of
// Valkey GLIDE where it has them.
type Options struct {
	// Backend compresses values: Zstd (default), LZ4 or None.
	Backend Backend
	// CompressionLevel is the backend's level: below its default faster, above smaller. 0 is the default: 3 for Zstd, 0
	// for LZ4. The libraries for Go have fewer levels than the format; spec/envelope.md says which stand for which.
	CompressionLevel int
	// MinCompressionSize is the length from which on values are compressed, in bytes, from 6. Default 64. Values under
	// 32 bytes never are.
	MinCompressionSize int
	// MaxDecompressedSize is the longest value that is compressed or decoded, in bytes. Default 512 MiB.
	MaxDecompressedSize int
	// ExistingEnvelopes says what becomes of values that are envelopes: Keep (default) or Wrap.
	ExistingEnvelopes ExistingEnvelopes
	// Window is the distance within which zstd looks for what repeats, in bytes: a power of 2 from 1 KiB to 8 MiB.
	// Default 1 MiB. With a smaller one a codec needs less memory for long values, and most of these become larger; but
	// pages of records that are computed alike may become smaller.
	Window int
	// Checksum makes zstd frames carry a checksum of the value, 4 bytes.
	Checksum bool
	// Exclude are globs of keys, as those of KEYS, whose values are stored as they are, unless they look like envelopes.
	// What was compressed before is still read. Default: none.
	Exclude []string
	// OnUndecodable says what becomes of envelopes that cannot be read: Raise (default), Raw or Miss.
	OnUndecodable OnUndecodable
	// Dictionaries has the dictionaries that values are written and read with. With LZ4 all readers must know backend 82.
	// Default: none.
	Dictionaries Dictionaries
}

// withDefaults fills in what is not given. It returns an *OptionError for what cannot be.
func (o Options) withDefaults() (Options, *backend, error) {
	o.Backend = cmp.Or(o.Backend, Zstd)
	o.MinCompressionSize = cmp.Or(o.MinCompressionSize, DefaultMinCompressionSize)
	o.MaxDecompressedSize = cmp.Or(o.MaxDecompressedSize, DefaultMaxDecompressedSize)
	o.Window = cmp.Or(o.Window, DefaultWindow)
	o.ExistingEnvelopes = cmp.Or(o.ExistingEnvelopes, Keep)
	o.OnUndecodable = cmp.Or(o.OnUndecodable, Raise)
	writer := (*backend)(nil)
	if o.Backend != None {
		writer = backendNamed(o.Backend)
		if writer == nil {
			return o, nil, oneOf("Backend", o.Backend, Zstd, LZ4, None)
		}
		o.CompressionLevel = cmp.Or(o.CompressionLevel, writer.defaultLevel)
		if o.CompressionLevel < writer.leastLevel || o.CompressionLevel > writer.mostLevel {
			allowed := fmt.Sprintf("for %s it is a number from %d to %d", o.Backend, writer.leastLevel, writer.mostLevel)
			return o, nil, &OptionError{"CompressionLevel", o.CompressionLevel, allowed}
		}
	}
	if o.ExistingEnvelopes != Keep && o.ExistingEnvelopes != Wrap {
		return o, nil, oneOf("ExistingEnvelopes", o.ExistingEnvelopes, Keep, Wrap)
	}
	if o.OnUndecodable != Raise && o.OnUndecodable != Raw && o.OnUndecodable != Miss {
		return o, nil, oneOf("OnUndecodable", o.OnUndecodable, Raise, Raw, Miss)
	}
	if o.MinCompressionSize < leastMinCompressionSize || o.MinCompressionSize > mostBytes {
		return o, nil, inRange("MinCompressionSize", o.MinCompressionSize, leastMinCompressionSize)
	}
	if o.MaxDecompressedSize < 1 || o.MaxDecompressedSize > mostBytes {
		return o, nil, inRange("MaxDecompressedSize", o.MaxDecompressedSize, 1)
	}
	if o.Window < leastWindow || o.Window > mostWindow || bits.OnesCount(uint(o.Window)) != 1 {
		allowed := fmt.Sprintf("it is a power of 2, a number of bytes from %d to %d", leastWindow, mostWindow)
		return o, nil, &OptionError{"Window", o.Window, allowed}
	}
	o.MinCompressionSize = max(o.MinCompressionSize, leastCompressed)
	o.Exclude = slices.Clone(o.Exclude)
	return o, writer, nil
}

func (o Options) effort() effort { return effort{o.CompressionLevel, o.Checksum, o.Window} }

func oneOf[T ~string](option string, value T, allowed ...T) error {
	return &OptionError{option, fmt.Sprintf("%q", string(value)), fmt.Sprintf("choose one of %q", allowed)}
}

func inRange(option string, value, least int) error {
	return &OptionError{option, value, fmt.Sprintf("it is a number of bytes from %d to %d", least, mostBytes)}
}
