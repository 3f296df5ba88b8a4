package cache

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/tinylib/msgp/msgp"
)

const (
	// notFound is the entry of something that does not exist. It is the one byte that MessagePack never uses.
	notFound = 0xc1
	// Every JSON text begins with a byte below, and every MessagePack of msgpForm with one from here on.
	leastMsgp = 0x80
	// The long form of a number below 128.
	msgpUint8 = 0xcc
)

var (
	errEmpty    = errors.New("it is empty")
	errNotMsgp  = errors.New("it is MessagePack, and the type has no generated code to read it: run github.com/tinylib/msgp on it")
	errTrailing = errors.New("something follows the value")
)

// form turns values of a type into JSON or MessagePack and back.
type form[T any] struct {
	// marshal and unmarshal are for MessagePack, nil for a type without generated code.
	marshal   func(dst []byte, value *T) ([]byte, error)
	unmarshal func(stored []byte, value *T) (rest []byte, err error)
	guard     guard
}

// msgpCode is the code that github.com/tinylib/msgp generates for a type, or rather for the pointer to it.
type msgpCode interface {
	msgp.Marshaler
	msgp.Unmarshaler
}

func newForm[T any]() form[T] {
	if _, isGenerated := any(new(T)).(msgpCode); isGenerated {
		return form[T]{
			marshal:   func(dst []byte, value *T) ([]byte, error) { return any(value).(msgpCode).MarshalMsg(dst) },
			unmarshal: func(stored []byte, value *T) ([]byte, error) { return any(value).(msgpCode).UnmarshalMsg(stored) },
			guard:     newGuard(reflect.TypeFor[T]()),
		}
	}
	kind := reflect.TypeFor[T]()
	if kind.Kind() != reflect.Pointer || !kind.Implements(reflect.TypeFor[msgpCode]()) {
		return form[T]{}
	}
	// T is itself the pointer.
	return form[T]{
		marshal: func(dst []byte, value *T) ([]byte, error) {
			if reflect.ValueOf(*value).IsNil() {
				return msgp.AppendNil(dst), nil
			}
			return any(*value).(msgpCode).MarshalMsg(dst)
		},
		unmarshal: func(stored []byte, value *T) ([]byte, error) {
			if msgp.IsNil(stored) {
				return stored[1:], nil
			}
			*value = reflect.New(kind.Elem()).Interface().(T)
			return any(*value).(msgpCode).UnmarshalMsg(stored)
		},
		guard: newGuard(kind),
	}
}

func (f form[T]) hasMsgp() bool { return f.marshal != nil }

// append appends a value as MessagePack or JSON.
func (f form[T]) append(dst []byte, value *T, asMsgp bool) ([]byte, error) {
	if !asMsgp {
		return appendJSON(dst, value)
	}
	start := len(dst)
	dst, err := f.marshal(dst, value)
	if err == nil && len(dst) > start && dst[start] < leastMsgp {
		// The short form of a small number is one byte, and might be a digit of JSON.
		dst = append(dst[:start], msgpUint8, dst[start])
	}
	return dst, err
}

// appendJSON appends what json.Marshal makes, which would be copied once more if dst is there already.
func appendJSON(dst []byte, value any) ([]byte, error) {
	if dst == nil {
		return json.Marshal(value)
	}
	text := sink(dst)
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		return dst, err
	}
	// The encoder ends a text with a newline.
	return text[:len(text)-1], nil
}

// sink is a slice to which is written at its end.
type sink []byte

func (s *sink) Write(written []byte) (int, error) {
	*s = append(*s, written...)
	return len(written), nil
}

// parse reads a value in either form. The value may share memory with the bytes, if generated code is told to.
func (f form[T]) parse(stored []byte) (value T, err error) {
	switch {
	case len(stored) == 0:
		return value, errEmpty
	case stored[0] < leastMsgp:
		err = json.Unmarshal(stored, &value)
	case f.unmarshal == nil:
		return value, errNotMsgp
	default:
		err = f.parseMsgp(stored, &value)
	}
	return value, err
}

func (f form[T]) parseMsgp(stored []byte, value *T) error {
	if err := f.guard(stored); err != nil {
		return err
	}
	rest, err := f.unmarshal(stored, value)
	if err == nil && len(rest) > 0 {
		return errTrailing
	}
	return err
}
