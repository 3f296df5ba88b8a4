package dictionaries

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
	cache := newCache(&Settings{UsesCatalogue: true, Refresh: time.Minute})
	first := all[0]
	cache.list(document{
		active:       []active{{"user:*", first.ID()}},
		dictionaries: []entry{{active{"user:*", first.ID()}, -1}},
	}, began)
	for at, each := range all {
		cache.hold(each, began)
		if at > 1 {
			// The second is read again and again.
			cache.AtHand(all[1].ID())
		}
	}
	if held := len(cache.IDs()); held != mostHeld+1 {
		t.Errorf("%d are at hand", held)
	}
	for _, at := range []int{0, 1, len(all) - 1} {
		if cache.AtHand(all[at].ID()) == nil {
			t.Errorf("number %d was let go", at)
		}
	}
	if cache.AtHand(all[2].ID()) != nil {
		t.Error("the one that was never used is still at hand")
	}
	if cache.For("user:1") != first || cache.For("order:1") != nil {
		t.Error("the active one is not used for its keys")
	}
}

func TestWhatIsForgottenIsLetGoUnlessItWasGiven(t *testing.T) {
	all := several(t, 2)
	cache := newCache(&Settings{Given: all[0], Refresh: time.Minute})
	cache.hold(all[1], began)
	cache.allow(true, began)
	if cache.For("anything") != all[0] {
		t.Error("the given one is not used")
	}
	cache.list(document{forgotten: []uint32{all[0].ID(), all[1].ID()}}, began)
	if cache.AtHand(all[0].ID()) == nil || cache.AtHand(all[1].ID()) != nil {
		t.Errorf("%v are at hand", cache.IDs())
	}
	cache.allow(false, began)
	if cache.For("anything") != nil {
		t.Error("values are written with one that is not allowed")
	}
}
