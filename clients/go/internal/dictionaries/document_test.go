package dictionaries

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"snugly.dev/go/internal/globs"
	"snugly.dev/go/internal/vectors"
)

func TestTheFirstPatternThatMatchesDecides(t *testing.T) {
	var read struct {
		Patterns []struct {
			Name   string
			Active []struct {
				Pattern string
				ID      uint32
			}
			Keys map[string]*uint32
		}
	}
	vectors.Read(t, "vectors/catalogue.json", &read)
	for _, each := range read.Patterns {
		for key, wanted := range each.Keys {
			var got *uint32
			for _, row := range each.Active {
				if globs.Matches(row.Pattern, key) {
					got = &row.ID
					break
				}
			}
			if (got == nil) != (wanted == nil) || got != nil && *got != *wanted {
				t.Errorf("%s: %q", each.Name, key)
			}
		}
	}
}

func TestDocumentsAreTakenAsTheVectorsSay(t *testing.T) {
	var read struct {
		Documents []struct{ Name, Document, Error string }
	}
	vectors.Read(t, "vectors/catalogue.json", &read)
	for _, each := range read.Documents {
		expectRefusal(t, each.Name, each.Document, each.Error)
	}
}

func expectRefusal(t *testing.T, name, content, wanted string) {
	t.Helper()
	_, err := decode([]byte(content))
	kind := ""
	var refused *DocumentError
	if errors.As(err, &refused) {
		kind = refused.Kind
	}
	if kind != wanted {
		t.Errorf("%s: got %v, wanted %q", name, err, wanted)
	}
}

func TestWhatIsNoCatalogueIsRefused(t *testing.T) {
	many := func(row string, count int) string {
		rows := []string{}
		for at := range count {
			rows = append(rows, fmt.Sprintf(row, at))
		}
		return strings.Join(rows, ",")
	}
	for _, each := range []struct{ document, wanted string }{
		{`[]`, "unreadable"},
		{`null`, "unreadable"},
		{`{"Version": 1}`, "unreadable"},
		{`{"version": 1, "active": null}`, "unreadable"},
		{`{"version": 1, "active": [{"pattern": "*", "id": -1}]}`, "unreadable"},
		{`{"version": 1, "dictionaries": [{"id": 7, "pattern": "*", "samples": "many"}]}`, "unreadable"},
		{"{\"version\": 1, \"note\": \"\xff\"}", "unreadable"},
		{strings.Repeat("[", 100_000), "unreadable"},
		{`{"version": 1, "ACTIVE": 7}`, ""},
		{`{"version": 1, "dictionaries": [{"id": 7, "pattern": "*", "ratio_before": null, "published_at": 18446744073709551615}]}`, ""},
		{strings.Repeat(" ", maxDocumentBytes+1), "too_large"},
		{`{"version": 1, "active": [` + many(`{"pattern": "%d", "id": 7}`, 128) + `]}`, ""},
		{`{"version": 1, "active": [` + many(`{"pattern": "%d", "id": 7}`, 129) + `]}`, "too_large"},
		{`{"version": 1, "dictionaries": [` + many(`{"pattern": "*", "id": %d}`, 1025) + `]}`, "too_large"},
		{`{"version": 1, "forgotten": [` + many(`%d`, 1025) + `]}`, "too_large"},
	} {
		expectRefusal(t, each.document[:min(len(each.document), 80)], each.document, each.wanted)
	}
}

func TestADictionaryIsChosenAsTheVectorsSay(t *testing.T) {
	var read struct {
		Choosing []struct {
			Name                 string
			Refresh              uint64
			Active, Dictionaries json.RawMessage
			FirstSeen            map[string]uint64 `json:"first_seen"`
			At                   map[string][]*uint32
		}
	}
	vectors.Read(t, "vectors/catalogue.json", &read)
	for _, each := range read.Choosing {
		listed, err := decode([]byte(fmt.Sprintf(`{"version": 1, "active": %s, "dictionaries": %s}`, each.Active, each.Dictionaries)))
		if err != nil {
			t.Fatal(err)
		}
		for moment, wanted := range each.At {
			now, err := strconv.ParseUint(moment, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			choices := listed.choices(seconds(now), seconds(each.Refresh), func(id uint32) time.Duration {
				return seconds(each.FirstSeen[strconv.FormatUint(uint64(id), 10)])
			})
			if len(choices) != len(wanted) {
				t.Fatalf("%s: %d choices", each.Name, len(choices))
			}
			for at, id := range wanted {
				if id == nil && choices[at].id != 0 || id != nil && choices[at].id != *id {
					t.Errorf("%s at %s: chose %d", each.Name, moment, choices[at].id)
				}
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version": 1, "active": [{"pattern": "user:*", "id": 7}], "dictionaries": [{"id": 7, "pattern": "user:*", "published_at": 5}], "forgotten": [8]}`), "user:1")
	f.Fuzz(func(t *testing.T, content []byte, key string) {
		read, err := decode(content)
		if err != nil {
			return
		}
		for _, row := range read.choices(seconds(100), seconds(60), func(uint32) time.Duration { return 0 }) {
			globs.Matches(row.pattern, key)
			if row.id != 0 && read.entry(row.id) == nil {
				t.Fatal("a dictionary that is not listed was chosen")
			}
		}
	})
}
