package commands

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// Arguments are those of a command, as a client library has them. The name is at 0.
type Arguments interface {
	// Len is their number, with the name.
	Len() int
	// Text is that of one, as it is sent; it is valid as long as the argument.
	Text(at int) string
}

// Value is the place of a value among the arguments, and that of its key. The name is at 0.
type Value struct{ At, Key int }

// Found has the finds of a pattern in a command. It is shared and must not be changed.
type Found struct {
	// Keys are the places of the keys.
	Keys []int
	// Values are the places of the values.
	Values []Value

	compared []int
	given    options
}

// options are some of the options of one row, as bits.
type options uint64

// pattern finds keys and values among arguments, from left to right, never going back over a choice.
type pattern struct {
	items   []item
	options []option
	// Fixed items, whose findings depend only on the number of arguments and are remembered for short commands.
	fixed      []item
	isByLength bool
	hasTail    bool
	remembered [rememberedLength]atomic.Pointer[Found]
}

// rememberedLength is more than the arguments of a command for which that is remembered.
const rememberedLength = 18

type option struct {
	name  string
	items []item
}

// kind is that of the arguments that an item of a pattern takes.
type kind int

const (
	takesKey kind = iota
	takesValue
	takesCompared
	takesWord
	takesID
	takesRest
	takesOptions
	takesTail
	takesMaybe
	takesRepeated
	takesCounted
)

var kinds = map[string]kind{
	"key": takesKey, "value": takesValue, "compared": takesCompared, "field": takesWord, "word": takesWord,
	"id": takesID, "rest": takesRest, "options": takesOptions, "tail": takesTail,
}

type item struct {
	kind  kind
	words []string // Of takesMaybe.
	group []item   // Of takesRepeated and takesCounted.
}

func newPattern(arguments []json.RawMessage, named map[string][]json.RawMessage) *pattern {
	made := &pattern{items: items(arguments)}
	if arguments == nil {
		made.items = []item{{kind: takesRest}}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		made.options = append(made.options, option{name, items(named[name])})
	}
	last := len(made.items) - 1
	made.hasTail = last >= 0 && made.items[last].kind == takesTail &&
		!slices.ContainsFunc(made.options, carriesMore) && !slices.ContainsFunc(made.items[:last], takesMany)
	made.fixed = made.items
	if made.hasTail {
		made.fixed = made.items[:last]
	}
	made.isByLength = !slices.ContainsFunc(made.fixed, dependsOnText)
	return made
}

func items(from []json.RawMessage) []item {
	made := []item{}
	for _, each := range from {
		made = append(made, newItem(each))
	}
	return made
}

func newItem(from json.RawMessage) item {
	var word string
	if json.Unmarshal(from, &word) == nil {
		kind, isKnown := kinds[word]
		if !isKnown {
			panic(fmt.Sprintf("the command table has an unknown item: %s", from))
		}
		return item{kind: kind}
	}
	var group struct {
		Maybe           []string
		Repeat, Counted []json.RawMessage
	}
	if err := json.Unmarshal(from, &group); err != nil {
		panic(fmt.Sprintf("the command table has an unknown item: %s", from))
	}
	switch {
	case group.Maybe != nil:
		return item{kind: takesMaybe, words: group.Maybe}
	case group.Repeat != nil:
		return item{kind: takesRepeated, group: items(group.Repeat)}
	case group.Counted != nil:
		return item{kind: takesCounted, group: items(group.Counted)}
	}
	panic(fmt.Sprintf("the command table has an unknown item: %s", from))
}

// carriesMore tells whether an option has other arguments than words of no concern.
func carriesMore(each option) bool {
	return slices.ContainsFunc(each.items, func(item item) bool { return item.kind != takesWord })
}

func takesMany(each item) bool { return each.kind == takesRepeated || each.kind == takesRest }

func dependsOnText(each item) bool {
	switch each.kind {
	case takesID, takesOptions, takesTail, takesMaybe, takesCounted:
		return true
	case takesRepeated:
		return slices.ContainsFunc(each.group, dependsOnText)
	}
	return false
}

// mask is the bits of some options.
func (p *pattern) mask(names []string) options {
	var mask options
	for at, each := range p.options {
		if slices.Contains(names, each.name) {
			mask |= 1 << at
		}
	}
	return mask
}

// option finds the option that a word names, in any case; -1 if it names none.
func (p *pattern) option(word string) int {
	for at := range p.options {
		if len(p.options[at].name) == len(word) && strings.EqualFold(p.options[at].name, word) {
			return at
		}
	}
	return -1
}

var nothing = &Found{}

// Find tells where a command has keys, values and options: nowhere if its arguments do not follow the pattern, which is
// for the server to complain of.
func Find[A Arguments](row *Row, args A) Found {
	pattern := row.arguments
	length := args.Len()
	if !pattern.isByLength {
		return find(pattern, pattern.items, args)
	}
	fixed := length
	if pattern.hasTail {
		fixed = min(length, len(pattern.fixed)+1)
	}
	if fixed >= rememberedLength {
		return find(pattern, pattern.items, args)
	}
	known := pattern.remembered[fixed].Load()
	if known == nil {
		found := find(pattern, pattern.fixed, shorter[A]{args, fixed})
		known = &found
		pattern.remembered[fixed].Store(known)
	}
	if fixed == length {
		return *known
	}
	// The rest is a tail, which has options and words of no concern.
	tail := match[A]{pattern: pattern, args: args, at: fixed, length: length}
	if !tail.items(pattern.items[len(pattern.fixed):]) {
		return *nothing
	}
	found := *known
	found.given = tail.found.given
	return found
}

// shorter are the first of some arguments.
type shorter[A Arguments] struct {
	args   A
	length int
}

func (s shorter[A]) Len() int           { return s.length }
func (s shorter[A]) Text(at int) string { return s.args.Text(at) }

func find[A Arguments](pattern *pattern, items []item, args A) Found {
	match := match[A]{pattern: pattern, args: args, at: 1, length: args.Len()}
	if !match.items(items) || match.at != match.length {
		return *nothing
	}
	return match.found
}

// match is one command against its pattern. What takes something returns false if it is not there.
type match[A Arguments] struct {
	pattern    *pattern
	args       A
	at, length int
	found      Found
}

func (m *match[A]) items(items []item) bool {
	for at := range items {
		if !m.item(&items[at]) {
			return false
		}
	}
	return true
}

func (m *match[A]) item(item *item) bool {
	switch item.kind {
	case takesKey:
		m.found.Keys = append(m.found.Keys, m.at)
		return m.take()
	case takesValue:
		m.found.Values = append(m.found.Values, Value{m.at, m.found.Keys[len(m.found.Keys)-1]})
		return m.take()
	case takesCompared:
		m.found.compared = append(m.found.compared, m.at)
		return m.take()
	case takesWord:
		return m.take()
	case takesID:
		return m.at < m.length && isNewEntryID(m.args.Text(m.at)) && m.take()
	case takesRest:
		m.at = m.length
	case takesOptions:
		for m.at < m.length {
			switch isOption, isGood := m.option(); {
			case !isGood:
				return false
			case !isOption:
				return true
			}
		}
	case takesTail:
		for m.at < m.length {
			switch isOption, isGood := m.option(); {
			case !isGood:
				return false
			case !isOption:
				m.at++
			}
		}
	case takesMaybe:
		if m.at < m.length && slices.ContainsFunc(item.words, func(word string) bool { return strings.EqualFold(word, m.args.Text(m.at)) }) {
			m.at++
		}
	case takesRepeated:
		return m.repeated(item.group)
	case takesCounted:
		return m.counted(item.group)
	}
	return true
}

func (m *match[A]) take() bool {
	m.at++
	return m.at <= m.length
}

// option takes an option, if there is one, and tells whether its own arguments are there.
func (m *match[A]) option() (isOption, isGood bool) {
	at := m.pattern.option(m.args.Text(m.at))
	if at < 0 {
		return false, true
	}
	m.at++
	m.found.given |= 1 << at
	return true, m.items(m.pattern.options[at].items)
}

// repeated takes the group as often as it fits, at least once.
func (m *match[A]) repeated(group []item) bool {
	if !m.items(group) {
		return false
	}
	for m.at < m.length {
		before := *m
		if !m.items(group) {
			*m = before
			return true
		}
	}
	return true
}

// counted takes a number, and then the group so many times.
func (m *match[A]) counted(group []item) bool {
	if m.at >= m.length {
		return false
	}
	count, isNumber := number(m.args.Text(m.at))
	if !isNumber {
		return false
	}
	m.at++
	for range count {
		if !m.items(group) {
			return false
		}
	}
	return true
}

// number reads a decimal number of up to nine digits.
func number(text string) (int, bool) {
	if len(text) == 0 || len(text) > 9 {
		return 0, false
	}
	read := 0
	for at := range len(text) {
		if !isDigit(text[at]) {
			return 0, false
		}
		read = 10*read + int(text[at]-'0')
	}
	return read, true
}

// isNewEntryID tells whether a word is the ID of a new stream entry: *, or digits, or digits, - and digits or *.
func isNewEntryID(word string) bool {
	milliseconds, sequence, hasSequence := strings.Cut(word, "-")
	return word == "*" || areDigits(milliseconds) && (!hasSequence || sequence == "*" || areDigits(sequence))
}

func areDigits(text string) bool {
	for at := range len(text) {
		if !isDigit(text[at]) {
			return false
		}
	}
	return len(text) > 0
}

func isDigit(letter byte) bool { return '0' <= letter && letter <= '9' }
