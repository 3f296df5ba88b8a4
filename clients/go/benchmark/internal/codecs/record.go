package codecs

import (
	"encoding/json"
	"fmt"

	"snugly.dev/go/benchmark/layout"
)

// step is something that is done with one record.
type step struct {
	name      string
	published string // Nanoseconds.
	run       func()
}

// steps are what the generated code and the standard library do with one record, without a cache.
func steps() ([]step, error) {
	value := layout.Record(123)
	packed, err := value.MarshalMsg(nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(&value)
	if err != nil {
		return nil, err
	}
	room := make([]byte, 0, 2*len(packed))
	var read layout.Layout
	return []step{
		{"msgp marshal", "36", func() { _, _ = value.MarshalMsg(nil) }},
		{"msgp append", "16", func() { _, _ = value.MarshalMsg(room) }},
		{"msgp unmarshal", "64", func() { _, _ = read.UnmarshalMsg(packed) }},
		{"JSON marshal", "", func() { _, _ = json.Marshal(&value) }},
		{"JSON unmarshal", "", func() { _ = json.Unmarshal(text, &read) }},
	}, nil
}

// record measures one record.
func record(how Settings) error {
	all, err := steps()
	if err != nil {
		return err
	}
	var candidates []func()
	for _, step := range all {
		candidates = append(candidates, step.run)
	}
	table := newTable("One record; times in ns", "", "time", "published", "allocations")
	for at, result := range measure(how, candidates...) {
		table.row(all[at].name, nanoseconds(result.nanoseconds), all[at].published, fmt.Sprint(result.allocations))
	}
	return table.print()
}
