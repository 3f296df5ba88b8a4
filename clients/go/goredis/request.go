package goredis

import (
	"bytes"
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/internal/commands"
)

// arguments are those of a command, as go-redis has them.
type arguments []any

// Len is their number, with the name.
func (a arguments) Len() int { return len(a) }

// Text is that of one, as it is sent, if it can be a word or a key.
func (a arguments) Text(at int) string {
	if content, isContent := valueOf(a[at]); isContent {
		return textOf(content)
	}
	switch number := reflect.Indirect(reflect.ValueOf(a[at])); {
	case number.CanInt():
		return strconv.FormatInt(number.Int(), 10)
	case number.CanUint():
		return strconv.FormatUint(number.Uint(), 10)
	case number.CanFloat():
		return strconv.FormatFloat(number.Float(), 'f', -1, 64)
	}
	return ""
}

// textOf is bytes as text, which must not be kept for longer than they.
func textOf(content []byte) string { return unsafe.String(unsafe.SliceData(content), len(content)) }

// encoded is a command that is sent with other arguments than the application gave. Its reply is that command's. That a
// command is one also says that its values are encoded.
type encoded struct {
	redis.Cmder
	arguments   []any
	restoration restoration
}

// given is the command of go-redis that reads the reply: the one that the application gave, or that it has embedded in a
// type of its own, as go-redis lets no other read one.
func given(command redis.Cmder) redis.Cmder {
	if sent, isEncoded := command.(*encoded); isEncoded {
		command = sent.Cmder
	}
	for {
		switch command.(type) {
		case *redis.StringCmd, *redis.StatusCmd, *redis.SliceCmd, *redis.Cmd:
			// Most are, and reflection takes longer.
			return command
		}
		inner := embedded(reflect.Indirect(reflect.ValueOf(command)))
		if inner == nil {
			return command
		}
		command = inner
	}
}

var goRedis = reflect.TypeFor[redis.Cmd]().PkgPath()

// embedded is the command that a type outside go-redis embeds; nil for others.
func embedded(value reflect.Value) redis.Cmder {
	if value.Kind() != reflect.Struct || value.Type().PkgPath() == goRedis {
		return nil
	}
	for at := range value.NumField() {
		if !value.Type().Field(at).Anonymous {
			continue
		}
		field := value.Field(at)
		if field.Kind() == reflect.Struct && field.CanAddr() {
			field = field.Addr()
		}
		if !field.CanInterface() {
			// A type that is not exported may embed one that is.
			if inner := embedded(reflect.Indirect(field)); inner != nil {
				return inner
			}
		} else if inner, isCommand := field.Interface().(redis.Cmder); isCommand {
			return inner
		}
	}
	return nil
}

// Args are the arguments that are sent.
func (e *encoded) Args() []any { return e.arguments }

// encode is the command with its values encoded: itself if none of them is.
func (h *hook) encode(command redis.Cmder, given arguments, found commands.Found, wanted restoration) redis.Cmder {
	var sent *encoded
	for _, each := range found.Values {
		value, isValue := valueOf(given[each.At])
		if !isValue {
			continue
		}
		h.compressor.Encode(given.Text(each.Key), value, func(envelope []byte) {
			if sent == nil {
				sent = &encoded{command, slices.Clone(given), wanted}
			}
			sent.arguments[each.At] = bytes.Clone(envelope)
		})
	}
	if sent == nil {
		return command
	}
	return sent
}

// valueOf gives the bytes that go-redis sends for a value. Numbers stay numbers; and what is no value at all is for
// go-redis to refuse.
func valueOf(argument any) ([]byte, bool) {
	switch argument := argument.(type) {
	case string:
		return unsafe.Slice(unsafe.StringData(argument), len(argument)), true
	case []byte:
		return argument, true
	case *string:
		if argument == nil {
			return nil, false
		}
		return unsafe.Slice(unsafe.StringData(*argument), len(*argument)), true
	case time.Time, *time.Time:
		// These could marshal themselves, but go-redis sends text for them.
		return nil, false
	case encoding.BinaryMarshaler:
		value, err := argument.MarshalBinary()
		return value, err == nil
	}
	return nil, false
}
