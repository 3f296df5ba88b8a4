package cache

import (
	"encoding/binary"
	"errors"
	"reflect"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// mostNested is the most levels of nested MessagePack, as with encoding/json: generated code calls itself for each level.
const mostNested = 10_000

var (
	errCut    = errors.New("it is MessagePack that is cut, or claims more elements than there are")
	errNested = errors.New("it is MessagePack that is nested too deep")
)

// guard looks at MessagePack before generated code reads it, which reserves as many elements as an array or a map claims
// to have.
type guard func(stored []byte) error

// newGuard gives the cheapest guard for a type that is enough.
func newGuard(kind reflect.Type) guard {
	if kind.Kind() == reflect.Slice && isFlat(kind.Elem()) {
		return checkFirst
	}
	if isFlat(kind) {
		return func([]byte) error { return nil }
	}
	return checkAll
}

// isFlat tells whether nothing in a type claims elements, as far as that is known.
func isFlat(kind reflect.Type) bool {
	switch kind.Kind() {
	case reflect.Slice:
		return kind.Elem().Kind() == reflect.Uint8
	case reflect.Array:
		return isFlat(kind.Elem())
	case reflect.Struct:
		if kind == reflect.TypeFor[time.Time]() {
			return true
		}
		// The effect of a shim on a type of another package is not known.
		if kind.Name() != "" && !reflect.PointerTo(kind).Implements(reflect.TypeFor[msgpCode]()) {
			return false
		}
		for at := range kind.NumField() {
			if field := kind.Field(at); field.IsExported() && !isFlat(field.Type) {
				return false
			}
		}
		return true
	case reflect.Map, reflect.Pointer, reflect.Interface:
		return false
	}
	return true
}

// checkFirst sees that there is a byte for each element of an array.
func checkFirst(stored []byte) error {
	if msgp.NextType(stored) != msgp.ArrayType {
		return nil
	}
	count, rest, err := msgp.ReadArrayHeaderBytes(stored)
	if err != nil || uint64(count) > uint64(len(rest)) {
		return errCut
	}
	return nil
}

// checkAll walks over MessagePack: all elements of all arrays and maps are there, and not nested too deep.
func checkAll(stored []byte) error {
	left := uint64(1)              // Elements that the innermost level still lacks,
	outer := make([]uint64, 0, 16) // and those around it.
	at := 0
	for {
		for ; left > 0; left-- {
			if at >= len(stored) {
				return errCut
			}
			row := &heads[stored[at]]
			if row.alone > 0 {
				at += int(row.alone)
				continue
			}
			length, elements := row.measure(stored[at:])
			rest := uint64(len(stored) - at)
			if length == 0 || length > rest || elements > rest-length {
				return errCut
			}
			at += int(length)
			if elements > 0 {
				if len(outer) == mostNested-1 {
					return errNested
				}
				outer = append(outer, left)
				left = elements + 1 // Less this one.
			}
		}
		if len(outer) == 0 {
			break
		}
		left = outer[len(outer)-1] - 1
		outer = outer[:len(outer)-1]
	}
	if at > len(stored) {
		return errCut
	}
	return nil
}

// head is the meaning of a first byte.
type head struct {
	// alone is the length of all of it, in bytes, if that is always the same and it has no elements.
	alone uint8
	// lengthBytes is the number of bytes of length that follow, and extra that of those behind: the type of an extension.
	lengthBytes, extra uint8
	// fixed is the number of elements where there is no length.
	fixed uint8
	// perElement is 0 if what is counted are bytes, 1 for an array, 2 for a map.
	perElement uint8
}

// heads has a row for each first byte (https://github.com/msgpack/msgpack/blob/master/spec.md#formats). That of c1, which
// is never used, is empty.
var heads = func() (rows [256]head) {
	for first := range rows {
		switch {
		case first < 0x80 || first >= 0xe0:
			rows[first] = head{alone: 1}
		case first < 0x90:
			rows[first] = head{fixed: uint8(first & 0x0f), perElement: 2}
		case first < 0xa0:
			rows[first] = head{fixed: uint8(first & 0x0f), perElement: 1}
		case first < 0xc0:
			rows[first] = head{alone: 1 + uint8(first&0x1f)}
		}
	}
	for first, length := range map[int]uint8{
		0xc0: 1, 0xc2: 1, 0xc3: 1, 0xca: 5, 0xcb: 9, 0xcc: 2, 0xcd: 3, 0xce: 5, 0xcf: 9, 0xd0: 2, 0xd1: 3, 0xd2: 5, 0xd3: 9,
		0xd4: 3, 0xd5: 4, 0xd6: 6, 0xd7: 10, 0xd8: 18,
	} {
		rows[first] = head{alone: length}
	}
	for width := range 3 {
		bytes := uint8(1) << width
		rows[0xc4+width] = head{lengthBytes: bytes}
		rows[0xc7+width] = head{lengthBytes: bytes, extra: 1}
		rows[0xd9+width] = head{lengthBytes: bytes}
	}
	for width := range 2 {
		bytes := uint8(2) << width
		rows[0xdc+width] = head{lengthBytes: bytes, perElement: 1}
		rows[0xde+width] = head{lengthBytes: bytes, perElement: 2}
	}
	return rows
}()

// measure gives the length of what comes first, up to its first element, and how many elements it has. The length is 0 if
// there is no such thing, or its own length is cut.
func (h *head) measure(stored []byte) (length, elements uint64) {
	if *h == (head{}) || len(stored) <= int(h.lengthBytes) {
		return 0, 0
	}
	counted := uint64(h.fixed)
	switch h.lengthBytes {
	case 1:
		counted = uint64(stored[1])
	case 2:
		counted = uint64(binary.BigEndian.Uint16(stored[1:]))
	case 4:
		counted = uint64(binary.BigEndian.Uint32(stored[1:]))
	}
	length = 1 + uint64(h.lengthBytes) + uint64(h.extra)
	if h.perElement == 0 {
		return length + counted, 0
	}
	return length, counted * uint64(h.perElement)
}
