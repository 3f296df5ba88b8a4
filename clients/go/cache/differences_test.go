package cache

import (
	"reflect"
	"testing"
	"time"
)

//go:generate go tool msgp -o differences_gen_test.go -tests=false -io=false -unexported

// differing has fields that may come back from MessagePack as something else than from JSON.
type differing struct {
	Slice    []string       `msg:"slice"`
	Map      map[string]int `msg:"map"`
	Bytes    []byte         `msg:"bytes"`
	Slices   []string       `msg:"slices,allownil"`
	Maps     map[string]int `msg:"maps,allownil"`
	Texts    []byte         `msg:"texts,allownil"`
	Time     time.Time      `msg:"time"`
	Anything any            `msg:"anything"`
}

// TestWhatComesBackFromMessagePackOtherwiseThanFromJSON: docs/go.md tells of it.
func TestWhatComesBackFromMessagePackOtherwiseThanFromJSON(t *testing.T) {
	empty := differing{
		Slice: []string{}, Map: map[string]int{}, Bytes: []byte{},
		Slices: []string{}, Maps: map[string]int{}, Texts: []byte{},
		Time: time.Date(2026, 11, 22, 10, 45, 0, 0, time.FixedZone("", 3600)), Anything: 5,
	}
	for name, each := range map[string]struct {
		codec       Codec
		given, want differing
	}{
		"nil in JSON":        {JSON, differing{}, differing{}},
		"empty in JSON":      {JSON, empty, with(empty, func(v *differing) { v.Anything = 5.0 })},
		"nil in MessagePack": {Msgp, differing{}, differing{Map: map[string]int{}, Time: time.Time{}.Local()}},
		"empty in MessagePack": {Msgp, empty, with(empty, func(v *differing) {
			v.Slice, v.Bytes, v.Time, v.Anything = nil, nil, v.Time.Local(), int64(5)
		})},
	} {
		coder := newTestCoder[differing](t, Options{Codec: each.codec})
		read := decoded(t, coder, encoded(t, coder, &each.given))
		// The same time in another zone is equal, and reads otherwise.
		if !read.Time.Equal(each.want.Time) || read.Time.Format(time.RFC3339) != each.want.Time.Format(time.RFC3339) {
			t.Errorf("%s: %v", name, read.Time)
		}
		read.Time = each.want.Time
		if !reflect.DeepEqual(read, each.want) {
			t.Errorf("%s: %#v", name, read)
		}
	}
}

func with(value differing, change func(*differing)) differing {
	change(&value)
	return value
}
