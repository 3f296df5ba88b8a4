package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snugly.dev/go/benchmark/layout"
	"snugly.dev/go/envelope"
)

var fixed = []Codec{JSON, Msgp, JSONZstd, MsgpZstd}

func newTestCoder[T any](t testing.TB, options Options) *coder[T] {
	t.Helper()
	options.TTL = NoExpiry
	options, err := options.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	made, err := newCoder[T](options)
	if err != nil {
		t.Fatal(err)
	}
	return &made
}

type failer interface {
	Helper()
	Fatal(arguments ...any)
}

func encoded[T any](t failer, coder *coder[T], value *T) []byte {
	t.Helper()
	stored, err := coder.encode("key", value, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func decoded[T any](t failer, coder *coder[T], stored []byte) T {
	t.Helper()
	value, err := coder.decode(context.Background(), "key", stored)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

var anyProfile = rapid.Custom(func(t *rapid.T) profile {
	value := profile{
		ID:      rapid.Int64().Draw(t, "id"),
		Name:    rapid.String().Draw(t, "name"),
		Emails:  rapid.SliceOfN(rapid.String(), 1, 20).Draw(t, "emails"),
		Notes:   rapid.MapOfN(rapid.String(), rapid.String(), 1, 5).Draw(t, "notes"),
		Picture: rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "picture"),
		Score:   rapid.Float64Range(-1e300, 1e300).Draw(t, "score"),
		At:      point{rapid.Int32().Draw(t, "x"), rapid.Int32().Draw(t, "y")},
	}
	value.Address.Street = rapid.String().Draw(t, "street")
	value.Address.Number = rapid.Uint16().Draw(t, "number")
	return value
})

func TestEveryCodecReadsWhatEveryOtherHasWritten(t *testing.T) {
	writers := map[Codec]*coder[profile]{}
	for _, codec := range append(fixed, Auto) {
		writers[codec] = newTestCoder[profile](t, Options{Codec: codec})
	}
	rapid.Check(t, func(t *rapid.T) {
		value := anyProfile.Draw(t, "value")
		friend := anyProfile.Draw(t, "friend")
		value.Friend = &friend
		for writer := range writers {
			stored := encoded(t, writers[writer], &value)
			before := bytes.Clone(stored)
			for reader := range writers {
				if read := decoded(t, writers[reader], stored); !reflect.DeepEqual(read, value) {
					t.Fatalf("%v read %+v, not %+v, which %v has written", reader, read, value, writer)
				}
			}
			if !bytes.Equal(stored, before) {
				t.Fatal("what is stored was changed by reading it")
			}
		}
	})
}

func TestNumbersInMessagePackAreNotTakenForJSON(t *testing.T) {
	packed, text := newTestCoder[age](t, Options{Codec: Msgp}), newTestCoder[age](t, Options{Codec: JSON})
	check := func(number age) {
		for _, stored := range [][]byte{encoded(t, packed, &number), encoded(t, text, &number)} {
			if read := decoded(t, packed, stored); read != number {
				t.Errorf("%d became %d in %x", number, read, stored)
			}
		}
	}
	for number := age(-300); number < 300; number++ {
		check(number)
	}
	check(math.MinInt64)
	check(math.MaxInt64)
}

func TestPointersAreStoredAsWhatTheyPointTo(t *testing.T) {
	one := &profile{ID: 7, Name: "Ada", Emails: []string{"ada@example.com"}}
	for _, codec := range fixed {
		values, pointers := newTestCoder[profile](t, Options{Codec: codec}), newTestCoder[*profile](t, Options{Codec: codec})
		stored := encoded(t, pointers, &one)
		if !bytes.Equal(stored, encoded(t, values, one)) {
			t.Errorf("%v stores a pointer as %q", codec, stored)
		}
		if read := decoded(t, pointers, stored); read.ID != one.ID || read == one {
			t.Errorf("%v read %+v", codec, read)
		}
		var none *profile
		if read := decoded(t, pointers, encoded(t, pointers, &none)); read != nil {
			t.Errorf("%v read %+v where there is nil", codec, read)
		}
	}
}

func TestPlainJSONIsWhatTheStandardLibraryWrites(t *testing.T) {
	value := profile{Name: "<Ada> & \u2028", Emails: []string{strings.Repeat("ada@example.com", 100)}}
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range append(fixed, Auto) {
		stored, err := newTestCoder[profile](t, Options{Codec: codec}).encode("key", &value, true, 1)
		if err != nil || !bytes.Equal(stored, want) {
			t.Errorf("%v with plain JSON writes %q: %v", codec, stored, err)
		}
	}
}

func TestOnlyCompressingCodecsWriteEnvelopesAndOnlyWhereTheseAreShorter(t *testing.T) {
	records, one := layout.Records(100), layout.Records(0)
	for _, codec := range fixed {
		coder := newTestCoder[layout.Layouts](t, Options{Codec: codec})
		if got := envelope.Is(encoded(t, coder, &records)); got != codecs[codec].compresses {
			t.Errorf("%v writes an envelope: %v", codec, got)
		}
		if stored := encoded(t, coder, &one); len(stored) > 2 {
			t.Errorf("%v makes %q of nothing", codec, stored)
		}
	}
}

func TestEnvelopesOfEveryBackendAreRead(t *testing.T) {
	records := layout.Records(10)
	text, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []envelope.Backend{envelope.Zstd, envelope.LZ4} {
		other, err := envelope.New(envelope.Options{Backend: backend})
		if err != nil {
			t.Fatal(err)
		}
		if read := decoded(t, newTestCoder[layout.Layouts](t, Options{Codec: JSON}), other.Encode(nil, text)); !reflect.DeepEqual(read, records) {
			t.Errorf("%v: %v", backend, read)
		}
	}
}

func TestWhatCannotBeReadIsAnErrorThatNamesTheKey(t *testing.T) {
	coder := newTestCoder[profiles](t, Options{})
	for name, stored := range map[string][]byte{
		"empty":                   {},
		"text":                    []byte("hello"),
		"cut JSON":                []byte(`[{"ID":1`),
		"another type in JSON":    []byte(`{"id":1}`),
		"cut MessagePack":         {0x91, 0x81, 0xa2, 'i', 'd'},
		"something behind":        {0x90, 0xc0},
		"JSON behind JSON":        []byte("[] []"),
		"a claim":                 {0xdd, 0xff, 0xff, 0xff, 0xff},
		"a claim in a claim":      {0x91, 0x81, 0xa6, 'e', 'm', 'a', 'i', 'l', 's', 0xdd, 0x7f, 0xff, 0xff, 0xff},
		"another type":            {0x81, 0xa2, 'i', 'd', 0x07},
		"never used":              {0xc1, 0xc1},
		"a damaged envelope":      {0, 1, 2, 0, 1, 2, 3},
		"an unknown envelope":     {0, 1, 2, 0, 0x1f, 2, 3},
		"deep MessagePack":        bytes.Repeat([]byte{0x91}, 1<<20),
		"deep JSON":               bytes.Repeat([]byte("["), 1<<20),
		"a picture that is a cut": {0x91, 0x81, 0xa7, 'p', 'i', 'c', 't', 'u', 'r', 'e', 0xc6, 0x7f, 0xff, 0xff, 0xff, 1},
	} {
		_, err := coder.decode(context.Background(), "v2:users", stored)
		failure := (*DecodeError)(nil)
		if !errors.As(err, &failure) || failure.Key != "v2:users" || !bytes.Equal(failure.Stored, stored) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagePackForATypeWithoutGeneratedCodeSaysWhatToDo(t *testing.T) {
	type plain struct{ Name string }
	value := profile{Name: "Ada"}
	stored := encoded(t, newTestCoder[profile](t, Options{Codec: Msgp}), &value)
	_, err := newTestCoder[plain](t, Options{}).decode(context.Background(), "key", stored)
	if !errors.Is(err, errNotMsgp) {
		t.Error(err)
	}
}

func TestValuesWithoutAFormAreAnErrorThatNamesTheKey(t *testing.T) {
	value := profile{Score: math.NaN()}
	for _, codec := range []Codec{JSON, JSONZstd} {
		_, err := newTestCoder[profile](t, Options{Codec: codec}).encode("v2:user:1", &value, false, 1)
		failure := (*EncodeError)(nil)
		if !errors.As(err, &failure) || failure.Key != "v2:user:1" {
			t.Errorf("%v: %v", codec, err)
		}
	}
}
