package cache

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snugly.dev/go/benchmark/layout"
)

// outdated is a struct that has got a field since its code was generated.
type outdated struct {
	ID   int64  `msg:"id"`
	Name string `msg:"name"`
}

func (outdated) MarshalMsg(dst []byte) ([]byte, error) {
	return append(dst, 0x81, 0xa2, 'i', 'd', 0x00), nil
}

func (*outdated) UnmarshalMsg(stored []byte) ([]byte, error) { return stored[5:], nil }

func TestTypesWhoseFieldsAllHaveNamesAreAccepted(t *testing.T) {
	for _, kind := range []reflect.Type{
		reflect.TypeFor[profile](),
		reflect.TypeFor[*profile](),
		reflect.TypeFor[profiles](),
		reflect.TypeFor[map[string][]profile](),
		reflect.TypeFor[point](),
		reflect.TypeFor[age](),
		reflect.TypeFor[taggedByJSON](),
		reflect.TypeFor[layout.Layouts](),
	} {
		if err := checkFields(kind); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

func TestFieldsWithoutATagAreAllReportedWhenTheCacheIsMade(t *testing.T) {
	for _, codec := range []Codec{Auto, Msgp, MsgpZstd} {
		_, err := New[untagged](nil, Options{TTL: NoExpiry, Codec: codec})
		failure := (*TypeError)(nil)
		if !errors.As(err, &failure) {
			t.Fatalf("%v: %v", codec, err)
		}
		want := []string{
			"untagged.AreaID has no msg tag: name it, as in `msg:\"area_id\"`",
			"struct.HTTPServer has no msg tag: name it, as in `msg:\"http_server\"`",
			"untaggedPart.Name has no msg tag: name it, as in `msg:\"name\"`",
		}
		if !slices.Equal(failure.Problems, want) || failure.Type != "cache.untagged" {
			t.Errorf("%v: %s has %q", codec, failure.Type, failure.Problems)
		}
	}
	if _, err := New[untagged](nil, Options{TTL: NoExpiry, Codec: JSONZstd}); err != nil {
		t.Errorf("JSON needs no msg tags: %v", err)
	}
}

func TestFieldsThatTheGeneratedCodeDoesNotKnowAreReported(t *testing.T) {
	_, err := New[outdated](nil, Options{TTL: NoExpiry})
	if err == nil || !strings.Contains(err.Error(), "outdated.Name is unknown to the generated code, which would drop it: run go generate") {
		t.Error(err)
	}
}

func TestATypeWithoutANameIsToldToHaveOne(t *testing.T) {
	for says, refused := range map[string]error{
		"as in type Values []cache.profile,":          refusal[[]profile](),
		"as in type Values map[string]cache.profile,": refusal[map[string]profile](),
		"it has no generated code":                    refusal[int](),
	} {
		if refused == nil || !strings.Contains(refused.Error(), says) {
			t.Errorf("got %v, wanted %s", refused, says)
		}
	}
}

func refusal[T any]() error {
	_, err := New[T](nil, Options{TTL: NoExpiry, Codec: Msgp})
	return err
}

func TestTypesWithoutGeneratedCodeAreRefusedOnlyByCodecsThatNeedIt(t *testing.T) {
	type plain struct{ Name string }
	for codec, isRefused := range map[Codec]bool{Auto: false, JSON: false, JSONZstd: false, Msgp: true, MsgpZstd: true} {
		_, err := New[plain](nil, Options{TTL: NoExpiry, Codec: codec})
		if (err != nil) != isRefused {
			t.Errorf("%v: %v", codec, err)
		}
	}
}

func TestProposedTagsAreInSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"ID": "id", "AreaID": "area_id", "IdempotencyKey": "idempotency_key", "HTTPServer": "http_server", "X": "x", "Größe": "größe", "V2": "v2",
	} {
		if got := snakeCase(name); got != want {
			t.Errorf("%s becomes %s, not %s", name, got, want)
		}
	}
}
