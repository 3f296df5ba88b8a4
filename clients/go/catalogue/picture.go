package catalogue

import (
	"slices"
	"sync/atomic"
	"time"

	"snugly.dev/go/envelope"
)

// mostHeld is how many dictionaries are kept besides those that values are written with.
const mostHeld = 128

// held is a dictionary that is at hand.
type held struct {
	dictionary *envelope.Dictionary
	// lastUsed is by the clock of its shelf, which goes on with each change.
	lastUsed atomic.Uint64
}

// picture is what encoders and decoders see. It never changes; another one takes its place.
type picture struct {
	held map[uint32]*held
	// everything is for all keys, whatever the selection.
	everything *held
	selection  []selected
}

// selected is the dictionary for the keys of a pattern, nil for none.
type selected struct {
	pattern string
	held    *held
}

// shelf has the dictionaries that are at hand, and which of them values are written with. Whoever changes it holds the
// lock of its owner; looking needs none.
type shelf struct {
	options *Options
	current atomic.Pointer[picture]
	clock   atomic.Uint64

	listed    document
	isAllowed bool // Whether values may be written with dictionaries.
	firstSeen map[uint32]time.Duration
}

func newShelf(options *Options) *shelf {
	made := &shelf{options: options, firstSeen: map[uint32]time.Duration{}, isAllowed: options.Given == nil}
	at := map[uint32]*held{}
	if options.Given != nil {
		at[options.Given.ID()] = &held{dictionary: options.Given}
	}
	made.current.Store(&picture{held: at})
	return made
}

// forKey is the dictionary that a value of this key is written with; nil for none.
func (s *shelf) forKey(key string) *envelope.Dictionary {
	now := s.current.Load()
	if now.everything == nil && len(now.selection) == 0 || s.excludes(key) {
		return nil
	}
	if now.everything != nil {
		return s.used(now.everything)
	}
	for at := range now.selection {
		if matches(now.selection[at].pattern, key) {
			return s.used(now.selection[at].held)
		}
	}
	return nil
}

func (s *shelf) excludes(key string) bool {
	return slices.ContainsFunc(s.options.Exclude, func(pattern string) bool { return matches(pattern, key) })
}

// atHand is the dictionary of an ID; nil if it is not at hand.
func (s *shelf) atHand(id uint32) *envelope.Dictionary { return s.used(s.current.Load().held[id]) }

func (s *shelf) used(each *held) *envelope.Dictionary {
	if each == nil {
		return nil
	}
	// Most have been used since the last change.
	if now := s.clock.Load(); each.lastUsed.Load() != now {
		each.lastUsed.Store(now)
	}
	return each.dictionary
}

// ids are those of all dictionaries that are at hand.
func (s *shelf) ids() []uint32 {
	var ids []uint32
	for id := range s.current.Load().held {
		ids = append(ids, id)
	}
	return ids
}

func (s *shelf) isHeld(id uint32) bool { return s.current.Load().held[id] != nil }

// hold keeps a dictionary at hand.
func (s *shelf) hold(dictionary *envelope.Dictionary, now time.Duration) {
	all := s.copy()
	if all[dictionary.ID()] == nil {
		added := &held{dictionary: dictionary}
		added.lastUsed.Store(s.clock.Load() + 1)
		all[dictionary.ID()] = added
	}
	s.show(all, now)
}

// list takes what the catalogue says, and lets go of what is forgotten. It returns the IDs of the dictionaries that
// values are to be written with and that are not at hand.
func (s *shelf) list(listed document, now time.Duration) (wanted []uint32) {
	seen := map[uint32]time.Duration{}
	for _, row := range listed.dictionaries {
		seen[row.id] = now
		if earlier, isKnown := s.firstSeen[row.id]; isKnown {
			seen[row.id] = earlier
		}
	}
	s.listed, s.firstSeen = listed, seen
	all := s.copy()
	for _, id := range listed.forgotten {
		if !s.isGiven(id) {
			delete(all, id)
		}
	}
	s.show(all, now)
	if !s.options.IsUsed {
		return nil
	}
	for _, row := range append(s.choices(now), listed.active...) {
		if row.id != 0 && listed.entry(row.id) != nil && !s.isHeld(row.id) && !slices.Contains(wanted, row.id) {
			wanted = append(wanted, row.id)
		}
	}
	return wanted
}

func (s *shelf) isForgotten(id uint32) bool { return slices.Contains(s.listed.forgotten, id) }

// allow says whether values may be written with dictionaries: not with one that is given and not beside the data.
func (s *shelf) allow(isAllowed bool, now time.Duration) {
	s.isAllowed = isAllowed
	s.show(s.copy(), now)
}

// choose chooses anew what to write with: time has passed.
func (s *shelf) choose(now time.Duration) { s.show(s.copy(), now) }

func (s *shelf) isGiven(id uint32) bool { return s.options.Given != nil && s.options.Given.ID() == id }

func (s *shelf) choices(now time.Duration) []choice {
	return s.listed.choices(now, s.options.Refresh, func(id uint32) time.Duration { return s.firstSeen[id] })
}

func (s *shelf) copy() map[uint32]*held {
	all := map[uint32]*held{}
	for id, each := range s.current.Load().held {
		all[id] = each
	}
	return all
}

// show replaces the picture: these are at hand, and what is written with follows from what is listed.
func (s *shelf) show(all map[uint32]*held, now time.Duration) {
	s.clock.Add(1)
	next := &picture{held: all}
	switch {
	case !s.isAllowed:
	case s.options.Given != nil:
		next.everything = all[s.options.Given.ID()]
	case s.options.IsUsed:
		for _, each := range s.choices(now) {
			next.selection = append(next.selection, selected{each.pattern, all[each.id]})
		}
	}
	s.letGo(next)
	s.current.Store(next)
}

// letGo drops what was used least recently, if there is too much that values are not written with.
func (s *shelf) letGo(from *picture) {
	isNeeded := func(id uint32) bool {
		return s.isGiven(id) ||
			slices.ContainsFunc(from.selection, func(each selected) bool { return each.held == from.held[id] }) ||
			s.options.IsUsed && slices.ContainsFunc(s.listed.active, func(row active) bool { return row.id == id })
	}
	var others []uint32
	for id := range from.held {
		if !isNeeded(id) {
			others = append(others, id)
		}
	}
	if len(others) <= mostHeld {
		return
	}
	slices.SortFunc(others, func(one, other uint32) int {
		return int(int64(from.held[one].lastUsed.Load() - from.held[other].lastUsed.Load()))
	})
	for _, id := range others[:len(others)-mostHeld] {
		delete(from.held, id)
	}
}
