package envelope_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"snugly.dev/go/envelope"
)

func Example() {
	codec, err := envelope.New(envelope.Options{ExistingEnvelopes: envelope.Wrap}) // zstd, level 3, from 64 bytes on
	if err != nil {
		panic(err)
	}
	page := []byte(strings.Repeat("<p>hello</p>", 500))

	stored := codec.Encode(nil, page)
	value, err := codec.Decode(nil, stored)

	fmt.Println(len(stored) < 100, bytes.Equal(value, page), err)
	// Output: true true <nil>
}

func ExampleInspect() {
	codec, err := envelope.New(envelope.Options{Backend: envelope.LZ4})
	if err != nil {
		panic(err)
	}
	header, isEnvelope := envelope.Inspect(codec.Encode(nil, make([]byte, 6000)))
	fmt.Println(isEnvelope, header.Name, header.Size)
	// Output: true lz4 6000
}

func ExampleUndecodableError() {
	codec, err := envelope.New(envelope.Options{})
	if err != nil {
		panic(err)
	}
	_, err = codec.Decode(nil, []byte("\x00\x01\x02\x00\x02\xff\xff\xff\xff\x50hello"))

	var undecodable *envelope.UndecodableError
	fmt.Println(errors.As(err, &undecodable), undecodable.Kind)
	// Output: true too_large
}
