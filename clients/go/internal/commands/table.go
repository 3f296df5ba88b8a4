// Package commands is the command table of the specification (spec/commands.json): where a command has values, where its
// reply has them, and what is refused.
//
// It knows the table's language, which spec/commands.md explains, and no command. What encoding and decoding a value
// means, and how a client library holds arguments and replies, is for others.
package commands

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A module holds only what is below it, so this is a copy; a test compares it with the file of the specification.
//
//go:embed commands.json
var document []byte

type tableDocument struct {
	Message   string
	Reasons   map[string]string
	Shapes    map[string]json.RawMessage
	Commands  map[string]rowDocument
	Numbers   []string
	Untouched map[string][]string
}

type rowDocument struct {
	Type      string
	Arguments []json.RawMessage
	Options   map[string][]json.RawMessage
	Reply     struct {
		Shape         string
		With, Without []string
	}
	Refuse []struct {
		Types  []string
		With   []string
		Reason string
	}
}

// Table has the rows that count for a client that compresses values of some types.
type Table struct {
	rows map[string]*Row
}

// New makes the table for some types of values, by their names in the table. The document is read here and never again.
func New[T ~string](types []T) *Table {
	names := make([]string, len(types))
	for at, each := range types {
		names[at] = string(each)
	}
	var read tableDocument
	if err := json.Unmarshal(document, &read); err != nil {
		panic(fmt.Sprintf("the command table cannot be read: %v", err))
	}
	shapes := compileShapes(read.Shapes)
	table := &Table{map[string]*Row{}}
	for name, each := range read.Commands {
		row := newRow(name, each, names, &read, shapes)
		if row.carriesValues || len(row.refusals) > 0 {
			table.rows[name] = row
		}
	}
	return table
}

// longestName is longer than the name of any command in the table, in bytes.
const longestName = 32

// Row finds the row of a command, whose name may be in any case; nil for one that is none of our business.
func (t *Table) Row(name string) *Row {
	if len(name) > longestName {
		return nil
	}
	var upper [longestName]byte
	for at := range len(name) {
		upper[at] = upperCase(name[at])
	}
	return t.rows[string(upper[:len(name)])]
}

func upperCase(letter byte) byte {
	if 'a' <= letter && letter <= 'z' {
		letter -= 'a' - 'A'
	}
	return letter
}

// Row says what becomes of one command.
type Row struct {
	// Name is the command's name in capitals.
	Name string

	carriesValues bool
	arguments     *pattern
	refusals      []refusal
	comparison    string
	shape         *Shape
	with, without options
}

// refusal is a rule: the command is refused if one of these options is given, or always if there are none.
type refusal struct {
	with    options
	message string
}

func newRow(name string, from rowDocument, types []string, table *tableDocument, shapes map[string]*Shape) *Row {
	row := &Row{Name: name, carriesValues: slices.Contains(types, from.Type)}
	row.arguments = newPattern(from.Arguments, from.Options)
	message := func(reason string) string {
		return strings.NewReplacer("{command}", name, "{reason}", table.Reasons[reason]).Replace(table.Message)
	}
	row.comparison = message("compare")
	for _, rule := range from.Refuse {
		if slices.ContainsFunc(rule.Types, func(each string) bool { return slices.Contains(types, each) }) {
			row.refusals = append(row.refusals, refusal{row.arguments.mask(rule.With), message(rule.Reason)})
		}
	}
	if row.carriesValues {
		row.shape = shapes[from.Reply.Shape]
		row.with, row.without = row.arguments.mask(from.Reply.With), row.arguments.mask(from.Reply.Without)
	}
	return row
}

// CarriesValues tells whether the command's arguments or its reply may have values to encode or decode.
func (r *Row) CarriesValues() bool { return r.carriesValues }

// Shape says where the reply has values, given what was found in the arguments; nil if it has none.
func (r *Row) Shape(found Found) *Shape {
	if r.with != 0 && r.with&found.given == 0 || r.without&found.given != 0 {
		return nil
	}
	return r.shape
}

// Refusal tells why a command must not be sent, given what was found in its arguments; empty if it may be.
func Refusal[A Arguments](row *Row, args A, found Found) (message string) {
	for _, rule := range row.refusals {
		if rule.with == 0 || rule.with&found.given != 0 {
			return rule.message
		}
	}
	if !row.carriesValues {
		return ""
	}
	for _, at := range found.compared {
		if !isComparable(args.Text(at)) {
			return row.comparison
		}
	}
	return ""
}

// isComparable tells whether no writer ever encodes such a value, so that the server may compare it.
func isComparable(value string) bool {
	return len(value) < 32 && !strings.HasPrefix(value, "\x00\x01\x02")
}

// IsName tells whether a word, in any case, is a command's name, which is in capitals.
func IsName(word, name string) bool {
	if len(word) != len(name) {
		return false
	}
	for at := range len(word) {
		if upperCase(word[at]) != name[at] {
			return false
		}
	}
	return true
}
