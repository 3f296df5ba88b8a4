package valkeygo_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/valkeygo"
)

// address is that of the server of the examples; a test sets it and runs them.
var address = "localhost:6379"

func ExampleCompress() {
	inner, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{address}})
	if err != nil {
		panic(err)
	}
	client, err := valkeygo.Compress(inner, compression.Options{
		ExistingEnvelopes: envelope.Wrap, // for values that end users make
	})
	if err != nil {
		panic(err)
	}
	defer client.Close() // closes inner, too

	ctx := context.Background()
	page := "<html>" + strings.Repeat("<p>hello</p>", 500)
	err = client.Do(ctx, client.B().Set().Key("page:1").Value(page).Ex(time.Minute).Build()).Error()
	if err != nil {
		panic(err)
	}
	value, err := client.DoCache(ctx, client.B().Get().Key("page:1").Cache(), time.Minute).ToString()
	fmt.Println(value == page, err)
}
