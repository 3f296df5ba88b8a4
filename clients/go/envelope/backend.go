package envelope

import "slices"

const (
	// HeaderLen is the length of the header in front of the payload, in bytes.
	HeaderLen = 5

	magic = "\x00\x01\x02\x00"
)

// backend is a way of encoding payloads: a row of backends.
type backend struct {
	number                              byte
	name                                string
	leastLevel, mostLevel, defaultLevel int
	// probeLevel finds out cheaply whether a value shrinks at all.
	probeLevel int
	// needsDictionary says that each payload names the dictionary that it needs.
	needsDictionary bool
	// lengthsFirst says that lengths stand in front of the payload, so that they are looked at before the dictionary.
	lengthsFirst bool
	// extent tells what a payload claims and can reach, or what is wrong with it.
	extent func(payload []byte) (found extent, fault string)
	// isStarted says whether a payload starts as it must; no value may be longer than the limit, in bytes.
	isStarted func(payload []byte, limit int) bool
	// newCompressor makes what writes payloads; nil for what is written only where another backend was chosen.
	newCompressor func(effort) (compressor, error)
	// withDictionary gives what writes payloads with a dictionary, of another backend; nil where there is none.
	withDictionary func(*Dictionary, effort) (writer, error)
	// decompress appends the value of a payload whose extent was found to be good. On a fault, dst is of no use.
	decompress func(dst, payload []byte, found extent, limit int, dictionary *Dictionary) (value []byte, kind Kind, fault string)
}

// effort is the difference between compressors of a backend. Not all of it is for every backend.
type effort struct {
	level    int
	checksum bool
	window   int
}

// compressor writes payloads, for any number of goroutines.
type compressor interface {
	// compress appends the payload for a value if it takes at most room bytes.
	compress(dst, value []byte, room int) ([]byte, bool)
	// bound is the room that any value of this length fits into, in bytes.
	bound(length int) int
}

// The numbers of the backends.
const (
	numberZstd           = 0x01
	numberLZ4            = 0x02
	numberZstdDictionary = 0x81
	numberLZ4Dictionary  = 0x82
)

var backends = [...]backend{
	{
		number: numberZstd, name: string(Zstd), leastLevel: -131072, mostLevel: 22, defaultLevel: 3, probeLevel: 1,
		extent: frameExtent, isStarted: isFrame, newCompressor: newZstd, withDictionary: frameWriter, decompress: decompressFrame,
	},
	{
		number: numberLZ4, name: string(LZ4), leastLevel: -128, mostLevel: 12, defaultLevel: 0, probeLevel: 0,
		extent: blockExtent, isStarted: isBlock, newCompressor: newLZ4, withDictionary: blockWriter, decompress: decompressBlock,
	},
	{
		number: numberZstdDictionary, name: "zstd_dictionary", needsDictionary: true,
		extent: dictionaryFrameExtent, isStarted: isDictionaryFrame, decompress: decompressFrame,
	},
	{
		number: numberLZ4Dictionary, name: "lz4_dictionary", needsDictionary: true, lengthsFirst: true,
		extent: dictionaryBlockExtent, isStarted: isDictionaryBlock, decompress: decompressDictionaryBlock,
	},
}

func backendNamed(name Backend) *backend {
	at := slices.IndexFunc(backends[:], func(row backend) bool { return row.newCompressor != nil && row.name == string(name) })
	if at < 0 {
		return nil
	}
	return &backends[at]
}

func backendNumbered(number byte) *backend {
	for at := range backends {
		if backends[at].number == number {
			return &backends[at]
		}
	}
	return nil
}

// Is tells whether a value counts as an envelope, well-formed or not. Anything else is somebody's own data.
func Is(stored []byte) bool {
	return len(stored) >= HeaderLen && string(stored[:len(magic)]) == magic && isBackend(stored[len(magic)])
}

func isBackend(number byte) bool {
	return 0x01 <= number && number <= 0x1f || 0x80 <= number && number <= 0x9f
}

// isWellFormed tells whether the backend of an envelope is known and its payload starts as it must.
func isWellFormed(stored []byte, limit int) bool {
	row := backendNumbered(stored[len(magic)])
	return row != nil && row.isStarted(stored[HeaderLen:], limit)
}

// Header has the claims of the first bytes of an envelope, true or not.
type Header struct {
	// Backend is the backend's number.
	Backend byte
	// Name is zstd, lz4, zstd_dictionary, lz4_dictionary, or empty for a backend that this version does not know.
	Name string
	// Size is the length that is claimed for the value, in bytes, if HasSize: zstd frames need not claim one.
	Size    uint64
	HasSize bool
	// Dictionary is the ID of the dictionary that is needed; 0 for none.
	Dictionary uint32
}

// Inspect tells what an envelope says of itself; false if the bytes are no envelope.
func Inspect(stored []byte) (Header, bool) {
	if !Is(stored) {
		return Header{}, false
	}
	header := Header{Backend: stored[len(magic)]}
	row := backendNumbered(header.Backend)
	if row == nil {
		return header, true
	}
	header.Name = row.name
	payload := stored[HeaderLen:]
	switch row.number {
	case numberLZ4, numberLZ4Dictionary:
		found, fault := row.extent(payload)
		header.Size, header.HasSize, header.Dictionary = found.claimed, fault == "", found.dictionary
	default:
		if frame, fault := parseFrameHeader(payload); fault == "" {
			header.Size, header.HasSize, header.Dictionary = frame.contentSize, frame.hasSize, frame.dictionary
		}
	}
	return header, true
}
