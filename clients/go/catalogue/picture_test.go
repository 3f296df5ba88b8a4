package catalogue

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// several are dictionaries of which no two are the same.
func several(t *testing.T, count int) []*envelope.Dictionary {
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	made := make([]*envelope.Dictionary, count)
	for at := range made {
		content := fmt.Appendf(slices.Clone(read.Dictionaries["profiles"].Bytes), "%d", at)
		binary.LittleEndian.PutUint32(content[4:], envelope.DictionaryID(content[8:]))
		loaded, err := envelope.LoadDictionary(content)
		if err != nil {
			t.Fatal(err)
		}
		made[at] = loaded
	}
	return made
}

func TestOfTooManyDictionariesThoseUsedLeastRecentlyGo(t *testing.T) {
	all := several(t, mostHeld+10)
	shelf := newShelf(&Options{IsUsed: true, Refresh: time.Minute})
	first := all[0]
	shelf.list(document{
		active:       []active{{"user:*", first.ID()}},
		dictionaries: []entry{{active{"user:*", first.ID()}, -1}},
	}, 0)
	for at, each := range all {
		shelf.hold(each, 0)
		if at > 1 {
			// The second is read again and again.
			shelf.atHand(all[1].ID())
		}
	}
	if held := len(shelf.ids()); held != mostHeld+1 {
		t.Errorf("%d are at hand", held)
	}
	for _, at := range []int{0, 1, len(all) - 1} {
		if shelf.atHand(all[at].ID()) == nil {
			t.Errorf("number %d was let go", at)
		}
	}
	if shelf.atHand(all[2].ID()) != nil {
		t.Error("the one that was never used is still at hand")
	}
	if shelf.forKey("user:1") != first || shelf.forKey("order:1") != nil {
		t.Error("the active one is not used for its keys")
	}
}

func TestWhatIsForgottenIsLetGoUnlessItWasGiven(t *testing.T) {
	all := several(t, 2)
	shelf := newShelf(&Options{Given: all[0], Refresh: time.Minute})
	shelf.hold(all[1], 0)
	shelf.allow(true, 0)
	if shelf.forKey("anything") != all[0] {
		t.Error("the given one is not used")
	}
	shelf.list(document{forgotten: []uint32{all[0].ID(), all[1].ID()}}, 0)
	if shelf.atHand(all[0].ID()) == nil || shelf.atHand(all[1].ID()) != nil {
		t.Errorf("%v are at hand", shelf.ids())
	}
	shelf.allow(false, 0)
	if shelf.forKey("anything") != nil {
		t.Error("values are written with one that is not allowed")
	}
}
