package dictionaries

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/globs"
)

// mostHeld is the most dictionaries that are kept besides those that values are written with.
const mostHeld = 128

// held is a dictionary that is at hand.
type held struct {
	dictionary *envelope.Dictionary
	// lastUsed is by the clock of its cache, which goes on with each change.
	lastUsed atomic.Uint64
}

// snapshot is the cache as encoders and decoders see it. It never changes; another one takes its place.
type snapshot struct {
	held map[uint32]*held
	// everything is for all keys, whatever the selection; nil if there is a selection, or nothing is written with.
	everything *held
	selection  []selected
}

// selected is the dictionary for the keys of a pattern, nil for none.
type selected struct {
	pattern string
	held    *held
}

// has tells whether values are written with a dictionary.
func (s *snapshot) has(id uint32) bool {
	each := s.held[id]
	return each == s.everything || slices.ContainsFunc(s.selection, func(other selected) bool { return other.held == each })
}

// DictionaryCache has the dictionaries that are at hand, and which of them values are written with, for any number of
// goroutines. Looking takes no lock.
type DictionaryCache struct {
	settings *Settings
	current  atomic.Pointer[snapshot]
	clock    atomic.Uint64

	mutex     sync.Mutex // Guards what follows, and changes of the snapshot.
	listed    document
	isAllowed bool // Values may be written with dictionaries.
	firstSeen map[uint32]time.Duration
}

func newCache(settings *Settings) *DictionaryCache {
	made := &DictionaryCache{settings: settings, isAllowed: settings.Given == nil}
	at := map[uint32]*held{}
	if settings.Given != nil {
		at[settings.Given.ID()] = &held{dictionary: settings.Given}
	}
	made.current.Store(&snapshot{held: at})
	return made
}

// For is the dictionary that a value of a key is written with; nil for none.
func (c *DictionaryCache) For(key string) *envelope.Dictionary {
	now := c.current.Load()
	if now.everything == nil && len(now.selection) == 0 || globs.MatchesAny(c.settings.Exclude, key) {
		return nil
	}
	if now.everything != nil {
		return c.used(now.everything)
	}
	for at := range now.selection {
		if globs.Matches(now.selection[at].pattern, key) {
			return c.used(now.selection[at].held)
		}
	}
	return nil
}

// AtHand is the dictionary of an ID, to read a value with; nil if it is not at hand.
func (c *DictionaryCache) AtHand(id uint32) *envelope.Dictionary {
	return c.used(c.current.Load().held[id])
}

func (c *DictionaryCache) used(each *held) *envelope.Dictionary {
	if each == nil {
		return nil
	}
	// Most have been used since the last change.
	if now := c.clock.Load(); each.lastUsed.Load() != now {
		each.lastUsed.Store(now)
	}
	return each.dictionary
}

// IDs are those of the dictionaries that are at hand, the least first.
func (c *DictionaryCache) IDs() []uint32 { return slices.Sorted(maps.Keys(c.current.Load().held)) }

// get is the dictionary of an ID, without using it; nil if it is not at hand.
func (c *DictionaryCache) get(id uint32) *envelope.Dictionary {
	if each := c.current.Load().held[id]; each != nil {
		return each.dictionary
	}
	return nil
}

func (c *DictionaryCache) isHeld(id uint32) bool { return c.get(id) != nil }

// isListed tells whether the catalogue, as it was read last, has a dictionary.
func (c *DictionaryCache) isListed(id uint32) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, isListed := c.firstSeen[id]
	return isListed
}

// hold keeps a dictionary at hand.
func (c *DictionaryCache) hold(dictionary *envelope.Dictionary, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all := c.copy()
	if all[dictionary.ID()] == nil {
		added := &held{dictionary: dictionary}
		added.lastUsed.Store(c.clock.Load() + 1)
		all[dictionary.ID()] = added
	}
	c.show(all, now)
}

// list takes what the catalogue says, and lets go of what is forgotten. It returns the IDs of the dictionaries that
// values are to be written with and that are not at hand, the least first.
func (c *DictionaryCache) list(listed document, now time.Time) (wanted []uint32) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	seen := map[uint32]time.Duration{}
	for _, row := range listed.dictionaries {
		seen[row.id] = since1970(now)
		if earlier, isKnown := c.firstSeen[row.id]; isKnown {
			seen[row.id] = earlier
		}
	}
	c.listed, c.firstSeen = listed, seen
	all := c.copy()
	for _, id := range listed.forgotten {
		if !c.settings.isGiven(id) {
			delete(all, id)
		}
	}
	c.show(all, now)
	if !c.settings.UsesCatalogue {
		return nil
	}
	for _, row := range append(c.choices(now), listed.active...) {
		if _, isListed := seen[row.id]; isListed && !c.isHeld(row.id) {
			wanted = append(wanted, row.id)
		}
	}
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

// allow says whether values may be written with dictionaries: not with one that is given and not beside the data.
func (c *DictionaryCache) allow(isAllowed bool, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isAllowed != isAllowed {
		c.isAllowed = isAllowed
		c.show(c.copy(), now)
	}
}

// choose chooses anew what to write with: time has passed.
func (c *DictionaryCache) choose(now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.show(c.copy(), now)
}

func since1970(now time.Time) time.Duration { return time.Duration(now.UnixNano()) }

func (c *DictionaryCache) choices(now time.Time) []choice {
	seen := func(id uint32) time.Duration { return c.firstSeen[id] }
	return c.listed.choices(since1970(now), c.settings.Refresh, seen)
}

func (c *DictionaryCache) copy() map[uint32]*held { return maps.Clone(c.current.Load().held) }

// show replaces the snapshot: these are at hand, and what is written with follows from what is listed.
func (c *DictionaryCache) show(all map[uint32]*held, now time.Time) {
	c.clock.Add(1)
	next := &snapshot{held: all}
	switch {
	case !c.isAllowed:
	case c.settings.Given != nil:
		next.everything = all[c.settings.Given.ID()]
	case c.settings.UsesCatalogue:
		for _, each := range c.choices(now) {
			next.selection = append(next.selection, selected{each.pattern, all[each.id]})
		}
	}
	c.letGo(next)
	c.current.Store(next)
}

// letGo drops what was used least recently, if there is too much that values are not written with.
func (c *DictionaryCache) letGo(from *snapshot) {
	var others []uint32
	for id := range from.held {
		if !c.isNeeded(from, id) {
			others = append(others, id)
		}
	}
	if len(others) <= mostHeld {
		return
	}
	slices.SortFunc(others, func(one, other uint32) int {
		return cmp.Or(cmp.Compare(from.held[one].lastUsed.Load(), from.held[other].lastUsed.Load()), cmp.Compare(one, other))
	})
	for _, id := range others[:len(others)-mostHeld] {
		delete(from.held, id)
	}
}

// isNeeded tells whether a dictionary stays at hand however long it was not used.
func (c *DictionaryCache) isNeeded(from *snapshot, id uint32) bool {
	return c.settings.isGiven(id) || from.has(id) ||
		c.settings.UsesCatalogue && slices.ContainsFunc(c.listed.active, func(row active) bool { return row.id == id })
}
