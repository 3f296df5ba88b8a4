package cache

import "fmt"

// Codec is a way of writing new entries. Each reads what any other has written.
type Codec uint8

const (
	// Auto measures the others on some of the values and writes with the one that Options.Goal makes the best.
	Auto Codec = iota
	// JSON writes what encoding/json does.
	JSON
	// Msgp writes MessagePack, with the code that github.com/tinylib/msgp generates.
	Msgp
	// JSONZstd writes JSON in an envelope, where that is shorter.
	JSONZstd
	// MsgpZstd writes MessagePack in an envelope, where that is shorter.
	MsgpZstd
)

// codecs has a row for each codec.
var codecs = [...]struct {
	name string
	// isMsgp says that it needs generated code.
	isMsgp bool
	// compresses says that it uses Options.Envelope.
	compresses bool
}{
	Auto:     {name: "auto"},
	JSON:     {name: "json"},
	Msgp:     {name: "msgp", isMsgp: true},
	JSONZstd: {name: "json+zstd", compresses: true},
	MsgpZstd: {name: "msgp+zstd", isMsgp: true, compresses: true},
}

// String gives the codec's name: auto, json, msgp, json+zstd or msgp+zstd.
func (c Codec) String() string {
	if int(c) >= len(codecs) {
		return fmt.Sprintf("Codec(%d)", uint8(c))
	}
	return codecs[c].name
}

// ParseCodec finds a codec by its name. It returns an *OptionError for a name that there is not.
func ParseCodec(name string) (Codec, error) {
	for codec := range codecs {
		if codecs[codec].name == name {
			return Codec(codec), nil
		}
	}
	return Auto, &OptionError{Option: "Codec", Value: fmt.Sprintf("%q", name), Allowed: codecsAllowed}
}

const codecsAllowed = "choose auto, json, msgp, json+zstd or msgp+zstd"
