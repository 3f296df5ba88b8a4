package cache

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
)

//go:generate go tool msgp -o omitted_gen_test.go -tests=false -io=false -unexported

// omitting has a field of each kind, and code that leaves them out where they are empty.
type omitting struct {
	Truth    bool           `msg:"truth,omitempty"`
	Number   int8           `msg:"number,omitempty"`
	Natural  uint64         `msg:"natural,omitempty"`
	Real     float32        `msg:"real,omitempty"`
	Complex  complex64      `msg:"complex,omitempty"`
	Text     string         `msg:"text,omitempty"`
	Bytes    []byte         `msg:"bytes,omitempty"`
	Array    [2]int         `msg:"array,omitempty"`
	Map      map[string]int `msg:"map,omitempty"`
	Part     omittedPart    `msg:"part,omitempty"`
	Pointer  *omittedPart   `msg:"pointer,omitempty"`
	Anything any            `msg:"anything,omitempty"`
	Time     time.Time      `msg:"time,omitzero"`
}

type omittedPart struct {
	Name string `msg:"name"`
}

//msgp:ignore outgrown delicate

// outgrown has the fields of omitting, and code that is older than all of them.
type outgrown omitting

func (outgrown) MarshalMsg(dst []byte) ([]byte, error) { return msgp.AppendMapHeader(dst, 0), nil }

// delicate has code that does not like every value.
type delicate struct {
	Text   string `msg:"text,omitempty"`
	Number int    `msg:"number,omitempty"`
}

func (d delicate) MarshalMsg(dst []byte) ([]byte, error) {
	if d.Text != "" {
		panic("what a text")
	}
	if d.Number != 0 {
		return dst, errors.New("what a number")
	}
	return msgp.AppendMapHeader(dst, 0), nil
}

func TestFieldsThatAreOnlyOmittedWhereTheyAreEmptyAreAccepted(t *testing.T) {
	for _, kind := range []reflect.Type{reflect.TypeFor[omitting](), reflect.TypeFor[delicate]()} {
		if err := checkFields(kind); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

func TestFieldsThatAreOmittedEvenWhereTheyHaveAValueAreReported(t *testing.T) {
	failure := (*TypeError)(nil)
	if !errors.As(checkFields(reflect.TypeFor[outgrown]()), &failure) {
		t.Fatal("they were accepted")
	}
	var want []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[outgrown]()) {
		want = append(want, "outgrown."+field.Name+" is unknown to the generated code, which would drop it: run go generate")
	}
	if !slices.Equal(failure.Problems, want) {
		t.Errorf("%q", failure.Problems)
	}
}

func TestEmbeddedStructsThatGeneratedCodeDropsAreReported(t *testing.T) {
	for kind, problem := range map[reflect.Type]string{
		reflect.TypeFor[EmbedsHidden]():        "EmbedsHidden.hiddenPart is not exported, so the generated code drops its fields: export it, or tag it `msg:\"-\"`",
		reflect.TypeFor[EmbedsHiddenPointer](): "EmbedsHiddenPointer.hiddenPart is not exported, so the generated code drops its fields: export it, or tag it `msg:\"-\"`",
		reflect.TypeFor[EmbedsWhatIsLost]():    "",
	} {
		failure := (*TypeError)(nil)
		isReported := errors.As(checkFields(kind), &failure)
		if isReported != (problem != "") || isReported && !slices.Equal(failure.Problems, []string{problem}) {
			t.Errorf("%v: %v", kind, failure)
		}
	}
}
