package valkeygo

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/valkey-io/valkey-go"
)

// valkey-go has no public way to make a result, so results are changed through their private fields. Their places are
// looked up once, by name and type; where they are not as expected, Compress says so and changes nothing.

// layout has the places of the fields, in bytes from the start of their struct.
type layout struct {
	resultErr, resultMessage, streamErr                         uintptr
	messageText, messageElements, messageLength, messageMarking uintptr
}

// fields is the layout of the version of valkey-go that this was built with, or what is wrong with it.
var fields, errLayout = findLayout()

func findLayout() (layout, error) {
	var found layout
	for _, each := range []struct {
		of, wanted reflect.Type
		name       string
		place      *uintptr
	}{
		{reflect.TypeFor[valkey.ValkeyResult](), reflect.TypeFor[error](), "err", &found.resultErr},
		{reflect.TypeFor[valkey.ValkeyResult](), reflect.TypeFor[valkey.ValkeyMessage](), "val", &found.resultMessage},
		{reflect.TypeFor[valkey.ValkeyResultStream](), reflect.TypeFor[error](), "e", &found.streamErr},
		{reflect.TypeFor[valkey.ValkeyMessage](), reflect.TypeFor[*byte](), "bytes", &found.messageText},
		{reflect.TypeFor[valkey.ValkeyMessage](), reflect.TypeFor[*valkey.ValkeyMessage](), "array", &found.messageElements},
		{reflect.TypeFor[valkey.ValkeyMessage](), reflect.TypeFor[int64](), "intlen", &found.messageLength},
		{reflect.TypeFor[valkey.ValkeyMessage](), reflect.TypeFor[byte](), "typ", &found.messageMarking},
	} {
		field, isThere := each.of.FieldByName(each.name)
		if !isThere || field.Type != each.wanted {
			return found, fmt.Errorf("valkeygo: this version of valkey-go has no field %s of type %v in %v: use one that snugly was tested with", each.name, each.wanted, each.of)
		}
		*each.place = field.Offset
	}
	return found, nil
}

// The markings of messages, as in RESP3.
const (
	marksText  = '$'
	marksArray = '*'
	marksSet   = '~'
	marksMap   = '%'
	marksNull  = '_'
)

func at[T, S any](of *S, place uintptr) *T { return (*T)(unsafe.Add(unsafe.Pointer(of), place)) }

func markingOf(message *valkey.ValkeyMessage) byte { return *at[byte](message, fields.messageMarking) }

func lengthOf(message *valkey.ValkeyMessage) *int64 { return at[int64](message, fields.messageLength) }

// textOf is the text of a message that is marked as one.
func textOf(message *valkey.ValkeyMessage) string {
	return unsafe.String(*at[*byte](message, fields.messageText), *lengthOf(message))
}

func setText(message *valkey.ValkeyMessage, text string) {
	*at[*byte](message, fields.messageText) = unsafe.StringData(text)
	*lengthOf(message) = int64(len(text))
}

// setNull makes a message what a value is that is not there.
func setNull(message *valkey.ValkeyMessage) {
	*at[byte](message, fields.messageMarking) = marksNull
	*at[*byte](message, fields.messageText) = nil
	*lengthOf(message) = 0
}

// elementsOf are those of a message that is marked as an array, set or map.
func elementsOf(message *valkey.ValkeyMessage) []valkey.ValkeyMessage {
	return unsafe.Slice(*at[*valkey.ValkeyMessage](message, fields.messageElements), *lengthOf(message))
}

func setElements(message *valkey.ValkeyMessage, elements []valkey.ValkeyMessage) {
	*at[*valkey.ValkeyMessage](message, fields.messageElements) = unsafe.SliceData(elements)
}

// messageOf is the reply in a result.
func messageOf(result *valkey.ValkeyResult) *valkey.ValkeyMessage {
	return at[valkey.ValkeyMessage](result, fields.resultMessage)
}

func messagesOf(results []valkey.ValkeyResult) []*valkey.ValkeyMessage {
	messages := make([]*valkey.ValkeyMessage, len(results))
	for at := range results {
		messages[at] = messageOf(&results[at])
	}
	return messages
}

// failed is a result that is an error.
func failed(err error) (result valkey.ValkeyResult) {
	*at[error](&result, fields.resultErr) = err
	return result
}

// failedStream is a stream that is an error.
func failedStream(err error) (stream valkey.ValkeyResultStream) {
	*at[error](&stream, fields.streamErr) = err
	return stream
}
