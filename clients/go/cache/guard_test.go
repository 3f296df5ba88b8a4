package cache

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"snugly.dev/go/benchmark/layout"
)

func TestTheWalkFindsTheEndThatTheLibraryFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "stored")
		// Heads that are rare in random bytes.
		stored[0] = rapid.OneOf(rapid.ByteRange(0x80, 0x9f), rapid.ByteRange(0xc0, 0xdf), rapid.Byte()).Draw(t, "first")
		_, err := msgp.Skip(stored)
		if (err == nil) != (checkAll(stored) == nil) {
			t.Fatalf("%x: the library says %v, the walk %v", stored, err, checkAll(stored))
		}
	})
}

func TestEachKindOfHeadIsMeasured(t *testing.T) {
	for first := range 256 {
		for _, length := range []int{1, 2, 3, 4, 5, 6, 9, 10, 17, 18, 40, 300} {
			stored := append([]byte{byte(first)}, bytes.Repeat([]byte{1}, length-1)...)
			_, err := msgp.Skip(stored)
			if (err == nil) != (checkAll(stored) == nil) {
				t.Errorf("%02x and %d bytes: the library says %v, the walk %v", first, length-1, err, checkAll(stored))
			}
		}
	}
}

func TestNestingHasALimit(t *testing.T) {
	nested := func(levels int) []byte { return append(bytes.Repeat([]byte{0x91}, levels), 0xc0) }
	if err := checkAll(nested(mostNested - 1)); err != nil {
		t.Error(err)
	}
	if err := checkAll(nested(mostNested)); !errors.Is(err, errNested) {
		t.Error(err)
	}
}

func TestOnlyTypesThatClaimElementsAreWalkedOver(t *testing.T) {
	name := func(g guard) uintptr { return reflect.ValueOf(g).Pointer() }
	for kind, want := range map[reflect.Type]guard{
		reflect.TypeFor[layout.Layouts]():  checkFirst,
		reflect.TypeFor[[]layout.Layout](): checkFirst,
		reflect.TypeFor[profile]():         checkAll,
		reflect.TypeFor[profiles]():        checkAll,
		reflect.TypeFor[*layout.Layout]():  checkAll,
	} {
		if name(newGuard(kind)) != name(want) {
			t.Errorf("%v has another guard", kind)
		}
	}
	for _, kind := range []reflect.Type{reflect.TypeFor[layout.Layout](), reflect.TypeFor[point](), reflect.TypeFor[age]()} {
		if got := name(newGuard(kind)); got == name(checkAll) || got == name(checkFirst) {
			t.Errorf("%v is looked at", kind)
		}
	}
}

func TestAClaimOfAnArrayOfFlatRecordsIsChecked(t *testing.T) {
	for stored, isGood := range map[string]bool{
		"\x90":                     true,
		"\x91\x80":                 true,
		"\x92\x80":                 false,
		"\xdd\xff\xff\xff\xff\x80": false,
		"\xdd\xff":                 false,
		"\x80":                     true, // The generated code says what is wrong.
	} {
		if err := checkFirst([]byte(stored)); (err == nil) != isGood {
			t.Errorf("%x: %v", stored, err)
		}
	}
}

func BenchmarkCheckAll(b *testing.B) {
	stored, err := layout.Records(1000).MarshalMsg(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(stored)))
	for range b.N {
		if err := checkAll(stored); err != nil {
			b.Fatal(err)
		}
	}
}
