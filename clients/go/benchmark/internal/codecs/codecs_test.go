package codecs

import (
	"testing"

	"snugly.dev/go/cache"
	"snugly.dev/go/envelope"
)

// Sizes in JSON and msgp are the same everywhere, and show that the records are. zstd's may differ between versions of
// the library, but must not be more than was published, which has no envelope; with a small window, not with one either.
func TestPagesTakeNoMoreThanWasPublished(t *testing.T) {
	all, err := allPages()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range all {
		want := published[page.codec].bytes
		isExact := page.codec == cache.JSON || page.codec == cache.Msgp
		if !isExact && page.window != smallWindow {
			want += envelope.HeaderLen
		}
		if page.bytes > want || isExact && page.bytes != want {
			t.Errorf("%s takes %d bytes, not %d", page.name(), page.bytes, want)
		}
	}
}

func TestAllPartsRun(t *testing.T) {
	for _, part := range Parts {
		if err := part.Measure(Settings{Rounds: 1, Records: 20}); err != nil {
			t.Errorf("%s: %v", part.Name, err)
		}
	}
}

func TestTheBytesOfValuesAreThoseThatAreNoNames(t *testing.T) {
	if got := valueBytes([]byte(`{"a":12,"b":{"c":true,"d":"x"}}`)); got != len(`12`+`true`+`"x"`) {
		t.Errorf("%d bytes", got)
	}
}

func BenchmarkPage(b *testing.B) {
	all, err := allPages()
	if err != nil {
		b.Fatal(err)
	}
	for _, page := range all {
		b.Run(page.name()+"/encode", func(b *testing.B) { repeat(b, page.encode) })
		b.Run(page.name()+"/decode", func(b *testing.B) { repeat(b, page.decode) })
	}
}

func BenchmarkRecord(b *testing.B) {
	all, err := steps()
	if err != nil {
		b.Fatal(err)
	}
	for _, step := range all {
		b.Run(step.name, func(b *testing.B) { repeat(b, step.run) })
	}
}

func repeat(b *testing.B, run func()) {
	b.ReportAllocs()
	for range b.N {
		run()
	}
}
