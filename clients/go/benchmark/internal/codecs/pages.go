package codecs

import (
	"context"
	"fmt"
	"time"

	"snugly.dev/go/benchmark/layout"
	"snugly.dev/go/cache"
	"snugly.dev/go/envelope"
)

// published has what a comparison reports for a page of a thousand records, with zstd at its fastest and without an
// envelope: bytes, and nanoseconds to encode.
var published = map[cache.Codec]struct {
	bytes       int
	nanoseconds float64
}{
	cache.JSON:     {256_243, 274_337},
	cache.Msgp:     {189_709, 31_810},
	cache.JSONZstd: {22_914, 557_230},
	cache.MsgpZstd: {27_517, 300_849},
}

// The levels of zstd: the one that was published, which is also what the default stands for, and a stronger one.
const (
	fastest  = 1
	stronger = 6
)

// smallWindow is how far back zstd looks in a second try, in bytes: what is like a record is near it.
const smallWindow = 64 << 10

// page is how a page of a thousand records is stored under a codec.
type page struct {
	codec          cache.Codec
	window         int
	bytes          int
	encode, decode func()
}

func (p page) name() string {
	if p.window == envelope.DefaultWindow {
		return p.codec.String()
	}
	return fmt.Sprintf("%v, window of %s bytes", p.codec, count(p.window))
}

// allPages has a page under each codec, JSON first.
func allPages() ([]page, error) {
	var all []page
	records := layout.Records(1000)
	for _, row := range []page{
		{codec: cache.JSON, window: envelope.DefaultWindow},
		{codec: cache.Msgp, window: envelope.DefaultWindow},
		{codec: cache.JSONZstd, window: envelope.DefaultWindow},
		{codec: cache.MsgpZstd, window: envelope.DefaultWindow},
		{codec: cache.JSONZstd, window: smallWindow},
		{codec: cache.MsgpZstd, window: smallWindow},
	} {
		pages, err := newCache[layout.Layouts](row.codec, envelope.Options{CompressionLevel: fastest, Window: row.window})
		if err != nil {
			return nil, err
		}
		stored, err := pages.Encode("page", records)
		if err != nil {
			return nil, err
		}
		all = append(all, page{
			codec: row.codec, window: row.window,
			bytes:  len(stored),
			encode: func() { _, _ = pages.Encode("page", records) },
			decode: func() { _, _ = pages.Decode(context.Background(), "page", stored) },
		})
	}
	return all, nil
}

// pages measures a page of a thousand records at one key, under each codec.
func pages(how Settings) error {
	all, err := allPages()
	if err != nil {
		return err
	}
	var encoders, decoders []func()
	for _, page := range all {
		encoders, decoders = append(encoders, page.encode), append(decoders, page.decode)
	}
	encoding, decoding := measure(how, encoders...), measure(how, decoders...)
	table := newTable("A page of 1,000 records, zstd at its fastest; times in ns, x is the time beside JSON's",
		"", "bytes", "published", "encode", "x", "allocations", "published", "x", "decode", "x", "allocations")
	for at, page := range all {
		before := published[page.codec]
		table.row(page.name(), count(page.bytes), count(before.bytes),
			nanoseconds(encoding[at].nanoseconds), ratio(encoding[at].nanoseconds/encoding[0].nanoseconds), fmt.Sprint(encoding[at].allocations),
			nanoseconds(before.nanoseconds), ratio(before.nanoseconds/published[cache.JSON].nanoseconds),
			nanoseconds(decoding[at].nanoseconds), ratio(decoding[at].nanoseconds/decoding[0].nanoseconds), fmt.Sprint(decoding[at].allocations))
	}
	if err := table.print(); err != nil {
		return err
	}
	fmt.Printf("\nThe %d bytes of the envelope are in ours.\n", envelope.HeaderLen)
	return nil
}

// newCache makes a cache that is only used to encode and decode.
func newCache[T any](codec cache.Codec, options envelope.Options) (*cache.Cache[T], error) {
	compressing, err := envelope.New(options)
	if err != nil {
		return nil, err
	}
	return cache.New[T](nil, cache.Options{Codec: codec, Envelope: compressing, TTL: time.Hour})
}
