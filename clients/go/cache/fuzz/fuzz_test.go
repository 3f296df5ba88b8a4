// Package fuzz feeds package cache with bytes that it has not written. It is a package of its own so that client libraries
// are not compiled for the fuzzer, which takes minutes.
package fuzz

import (
	"context"
	"runtime"
	"testing"

	"snugly.dev/go/cache"
	"snugly.dev/go/envelope"
)

// Greatest length of the content of an envelope, in bytes.
const longest = 1 << 20

func newCache(t testing.TB, codec cache.Codec) *cache.Cache[Documents] {
	t.Helper()
	limited, err := envelope.New(envelope.Options{MaxDecompressedSize: longest})
	if err != nil {
		t.Fatal(err)
	}
	made, err := cache.New[Documents](nil, cache.Options{Codec: codec, Envelope: limited, TTL: cache.NoExpiry})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func FuzzDecode(f *testing.F) {
	ctx := context.Background()
	documents := Documents{{
		ID: 1, Name: "Ada", Picture: []byte{1, 2}, Tags: []string{"a", "b"}, Notes: map[string]string{"a": "b"},
		Next: &Document{ID: 2, Any: []any{1, "a"}},
	}}
	for _, codec := range []cache.Codec{cache.JSON, cache.Msgp, cache.JSONZstd, cache.MsgpZstd} {
		stored, err := newCache(f, codec).Encode("key", documents)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stored)
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	reader, writer := newCache(f, cache.JSON), newCache(f, cache.Msgp)
	f.Fuzz(func(t *testing.T, stored []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		value, err := reader.Decode(ctx, "key", stored)
		runtime.ReadMemStats(&after)
		length := uint64(len(stored))
		if envelope.Is(stored) {
			length = longest
		}
		// A byte is an element of up to 200 bytes at most, and slices grow by halves.
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20+length*1000 {
			t.Fatalf("%d bytes were reserved for %d", taken, len(stored))
		}
		if err != nil {
			return
		}
		again, err := writer.Encode("key", value)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := reader.Decode(ctx, "key", again); err != nil || len(read) != len(value) {
			t.Fatalf("%d documents became %d: %v", len(value), len(read), err)
		}
	})
}
