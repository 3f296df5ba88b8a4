package dictionaries

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	version          = 1
	maxDocumentBytes = 1 << 20
	maxActive        = 128
	maxDictionaries  = 1024
	maxForgotten     = 1024
	maxPatternBytes  = 256
)

// document is a catalogue, as far as readers and writers need it.
type document struct {
	active       []active
	dictionaries []entry
	forgotten    []uint32
}

// active is the dictionary that is used for the keys of a pattern.
type active struct {
	pattern string
	id      uint32
}

// entry is one dictionary.
type entry struct {
	active
	// published is since 1970; below 0 if it is not said.
	published time.Duration
}

// DocumentError is a catalogue that is refused.
type DocumentError struct {
	// Kind is version, unreadable or too_large.
	Kind string
	// Reason says what is wrong, in words.
	Reason string
}

// Error says what is wrong.
func (e *DocumentError) Error() string { return e.Reason }

// decode reads a document. It returns a *DocumentError for what is no catalogue, is one of another version, or exceeds
// one of the limits.
func decode(content []byte) (document, error) {
	if len(content) > maxDocumentBytes {
		return document{}, tooLarge("bytes", len(content), maxDocumentBytes)
	}
	read, err := decodeRows(content)
	if err != nil {
		var refused *DocumentError
		if !errors.As(err, &refused) {
			refused = &DocumentError{"unreadable", fmt.Sprintf("not a catalogue of dictionaries: %v", err)}
		}
		return document{}, refused
	}
	if err := read.check(); err != nil {
		return document{}, err
	}
	return read, nil
}

func decodeRows(content []byte) (read document, err error) {
	if !utf8.Valid(content) {
		return read, errors.New("it is no UTF-8")
	}
	var whole fields
	if err := json.Unmarshal(content, &whole); err != nil {
		return read, err
	}
	var found uint64
	if err := whole.required("version", &found); err != nil {
		return read, err
	}
	if found != version {
		return read, &DocumentError{"version", fmt.Sprintf("the catalogue has version %d, and this client knows version %d: update the client", found, version)}
	}
	var rows, entries []fields
	for _, err := range []error{
		whole.optional("active", &rows), whole.optional("dictionaries", &entries), whole.optional("forgotten", &read.forgotten),
	} {
		if err != nil {
			return read, err
		}
	}
	for _, each := range rows {
		row, err := decodeActive(each)
		if err != nil {
			return read, err
		}
		read.active = append(read.active, row)
	}
	for _, each := range entries {
		row, err := decodeEntry(each)
		if err != nil {
			return read, err
		}
		read.dictionaries = append(read.dictionaries, row)
	}
	return read, nil
}

func decodeActive(from fields) (row active, err error) {
	return row, errors.Join(from.required("pattern", &row.pattern), from.required("id", &row.id))
}

func decodeEntry(from fields) (row entry, err error) {
	if row.active, err = decodeActive(from); err != nil {
		return row, err
	}
	// Information for people is checked as well: it must have the types that clients of other languages expect.
	var size, samples uint64
	var trained string
	var before, after *float64
	var published *uint64
	err = errors.Join(
		from.optional("bytes", &size), from.optional("samples", &samples), from.optional("trained_at", &trained),
		from.nullable("ratio_before", &before), from.nullable("ratio_after", &after), from.nullable("published_at", &published),
	)
	row.published = -1
	if published != nil {
		row.published = seconds(*published)
	}
	return row, err
}

// seconds is a duration of so many, at most the longest that there is.
func seconds(count uint64) time.Duration {
	return time.Duration(min(count, math.MaxInt64/uint64(time.Second))) * time.Second
}

// fields are those of a JSON object, by their exact names.
type fields map[string]json.RawMessage

func (f fields) required(name string, target any) error {
	if _, isThere := f[name]; !isThere {
		return fmt.Errorf("%s is missing", name)
	}
	return f.optional(name, target)
}

func (f fields) optional(name string, target any) error {
	if bytes.Equal(f[name], []byte("null")) {
		return fmt.Errorf("%s is null", name)
	}
	return f.nullable(name, target)
}

func (f fields) nullable(name string, target any) error {
	value, isThere := f[name]
	if !isThere {
		return nil
	}
	if err := json.Unmarshal(value, target); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (d *document) check() error {
	for _, each := range []struct {
		what        string
		count, most int
	}{
		{"active patterns", len(d.active), maxActive},
		{"dictionaries", len(d.dictionaries), maxDictionaries},
		{"forgotten dictionaries", len(d.forgotten), maxForgotten},
	} {
		if each.count > each.most {
			return tooLarge(each.what, each.count, each.most)
		}
	}
	for _, row := range d.active {
		if len(row.pattern) > maxPatternBytes {
			return tooLarge("bytes in a pattern", len(row.pattern), maxPatternBytes)
		}
	}
	for at, row := range d.dictionaries {
		if d.entry(row.id) != &d.dictionaries[at] {
			return &DocumentError{"unreadable", fmt.Sprintf("the catalogue has the dictionary %d twice", row.id)}
		}
	}
	return nil
}

func tooLarge(what string, count, most int) error {
	return &DocumentError{"too_large", fmt.Sprintf("the catalogue has %d %s, and at most %d are accepted", count, what, most)}
}

// entry finds the dictionary of an ID; nil if there is none.
func (d *document) entry(id uint32) *entry {
	at := slices.IndexFunc(d.dictionaries, func(row entry) bool { return row.id == id })
	if at < 0 {
		return nil
	}
	return &d.dictionaries[at]
}

// choice is a writer's dictionary for the keys of a pattern at some moment: the ID is 0 for no dictionary.
type choice = active

// choices are those of a writer for each active pattern, in their order. A dictionary is used one refresh after it was
// published, or was seen first; until then the last one of its pattern that is, if there is one. now, and what seen gives
// for the ID of a dictionary, are since 1970.
func (d *document) choices(now, refresh time.Duration, seen func(id uint32) time.Duration) []choice {
	isUsable := func(row *entry) bool {
		return row.published < 0 || min(row.published, seen(row.id)) <= now-refresh
	}
	made := make([]choice, 0, len(d.active))
	for _, row := range d.active {
		own := d.entry(row.id)
		if own == nil || !isUsable(own) {
			own = nil
			for at := range d.dictionaries {
				other := &d.dictionaries[at]
				if other.pattern == row.pattern && isUsable(other) && (own == nil || other.published >= own.published) {
					own = other
				}
			}
		}
		each := choice{pattern: row.pattern}
		if own != nil {
			each.id = own.id
		}
		made = append(made, each)
	}
	return made
}
