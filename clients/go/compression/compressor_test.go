package compression_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
)

// made is a compressor without a server: none is asked while no value names a dictionary.
func made(t interface{ Fatal(...any) }, options compression.Options) *compression.Compressor {
	compressor, err := compression.New(nil, options)
	if err != nil {
		t.Fatal(err)
	}
	return compressor
}

func TestWhatIsRestoredIsWhatWasEncoded(t *testing.T) {
	compressor := made(t, compression.Options{ExistingEnvelopes: envelope.Wrap})
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Repeat(rapid.String().Draw(t, "part"), rapid.IntRange(0, 50).Draw(t, "times"))
		stored := value
		isEncoded := compressor.Encode("key", []byte(value), func(envelope []byte) { stored = string(envelope) })
		if isEncoded != compression.IsEnvelope(stored) {
			t.Fatalf("%d bytes: encoded %v, stored %q", len(value), isEncoded, stored)
		}
		reply := compressor.Reply(context.Background())
		restored, err := reply.Restore("key", stored)
		if err != nil || restored != value {
			t.Fatalf("%q was restored to %q: %v", value, restored, err)
		}
	})
}

func TestTheBufferOfAnEnvelopeIsUsedAgain(t *testing.T) {
	compressor := made(t, compression.Options{})
	value := []byte(strings.Repeat("hello ", 200))
	var length int
	keep := func(envelope []byte) { length = len(envelope) }
	compressor.Encode("key", value, keep)
	// The race detector lets pools lose what they hold, now and then.
	if allocations := testing.AllocsPerRun(100, func() { compressor.Encode("key", value, keep) }); allocations > 1 || length == 0 {
		t.Errorf("%v allocations for an envelope of %d bytes", allocations, length)
	}
}

func TestAnErrorNamesTheKeyAndLeavesWhatIsStored(t *testing.T) {
	stored := "\x00\x01\x02\x00\x1fnewer"
	reply := made(t, compression.Options{}).Reply(context.Background())
	restored, err := reply.Restore("user:1", stored)
	var undecodable *envelope.UndecodableError
	if !errors.As(err, &undecodable) || undecodable.Key != "user:1" || undecodable.Kind != envelope.UnknownBackend || restored != stored {
		t.Errorf("got %q and %v", restored, err)
	}
}

func TestApplicationsCanNameEveryTypeThatTheyMeet(t *testing.T) {
	met := []reflect.Type{reflect.TypeFor[compression.RefusedError](), reflect.TypeFor[compression.ValueType]()}
	compressor := reflect.TypeFor[*compression.Compressor]()
	for at := range compressor.NumMethod() {
		method := compressor.Method(at).Type
		for at := range method.NumIn() {
			met = append(met, method.In(at))
		}
		for at := range method.NumOut() {
			met = append(met, method.Out(at))
		}
	}
	for _, each := range met {
		if each.Kind() == reflect.Pointer || each.Kind() == reflect.Slice {
			each = each.Elem()
		}
		if strings.Contains(each.PkgPath(), "/internal/") {
			t.Errorf("%v is of %s", each, each.PkgPath())
		}
	}
}

func TestOptionsThatCannotBeAreRefusedWithWhatIsAllowed(t *testing.T) {
	for says, options := range map[string]compression.Options{
		"CompressionLevel is 99: for zstd it is a number from -131072 to 22":          {CompressionLevel: 99},
		`ValueTypes is [sets]: choose some of ["strings" "hashes" "lists" "streams"]`: {ValueTypes: []compression.ValueType{"sets"}},
		"DictionaryRefresh is 1ns: it is a duration from 100ms to 24h0m0s":            {DictionaryRefresh: 1},
		"MinCompressionSize is 5: it is a number of bytes from 6 to 4294967295":       {MinCompressionSize: 5},
		`ExistingEnvelopes is "lose": choose one of ["keep" "wrap"]`:                  {ExistingEnvelopes: "lose"},
	} {
		_, err := compression.New(nil, options)
		var refused *envelope.OptionError
		if !errors.As(err, &refused) || err.Error() != says {
			t.Errorf("got %v, wanted %s", err, says)
		}
	}
}
