package dictionaries

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"snugly.dev/go/envelope"
)

const (
	// roundsPerRefresh is the number of rounds of maintenance for each time that the catalogue is read.
	roundsPerRefresh = 12
	// mostWarned is the most different warnings that are told.
	mostWarned = 1000
)

// Settings are those of one client, which do not change.
type Settings struct {
	// Given is the dictionary that the client was given, and writes with while it is beside the data; nil for none.
	Given *envelope.Dictionary
	// UsesCatalogue says that values are written with the dictionaries that the catalogue names.
	UsesCatalogue bool
	// Exclude are globs of keys whose values are written without a dictionary.
	Exclude []string
	// Prefix begins the names of all keys of dictionaries.
	Prefix string
	// Refresh is the time between two readings of the catalogue, for which a new dictionary is not written with.
	Refresh time.Duration
	// Waits says that unknown dictionaries are waited for: the client has one of its own.
	Waits bool
	// LongestWait is the longest time that a missing dictionary is waited for; 0 where only rounds say that.
	LongestWait time.Duration
	// HasCopies says that copies are kept in a folder.
	HasCopies bool
}

// Writes tells whether values are ever written with a dictionary.
func (s *Settings) Writes() bool { return s.UsesCatalogue || s.Given != nil }

// Round is the time between two rounds of maintenance.
func (s *Settings) Round() time.Duration { return s.Refresh / roundsPerRefresh }

// patience is the time that a missing dictionary is waited for.
func (s *Settings) patience() time.Duration {
	longest := max(time.Duration(patience*float64(s.Round())), leastPatience)
	if s.LongestWait > 0 {
		return min(longest, s.LongestWait)
	}
	return longest
}

// CatalogueKey is the key of the catalogue.
func (s *Settings) CatalogueKey() string { return s.Prefix + ":dicts" }

// DictionaryKey is the key of a dictionary.
func (s *Settings) DictionaryKey(id uint32) string { return fmt.Sprintf("%s:dict:%d", s.Prefix, id) }

// isGiven tells whether an ID is that of the dictionary that the client was given.
func (s *Settings) isGiven(id uint32) bool { return s.Given != nil && s.Given.ID() == id }

// Manager says what a client asks its server about dictionaries, and when. It is for any number of goroutines, and any
// number of its tasks may be under way at the same time.
type Manager struct {
	settings Settings
	cache    *DictionaryCache

	mutex sync.Mutex // Guards what follows.
	state state
}

// state is the knowledge of the server's dictionaries, beside those in the cache.
type state struct {
	isKnown         bool // There was a catalogue when it was read last.
	readAt, roundAt time.Time
	offUntil        time.Time // Dictionaries are not asked for, for want of permission.
	unkeptUntil     time.Time // They are not kept from eviction, for want of permission.
	wanted          []uint32
	forgotten       []uint32
	missing         missing
	unknown         unknown
	compared        uint32 // The last dictionary that was compared with what is in its place.
	hasFailed       bool   // The server could not be reached by the last maintenance.
	warned          map[string]bool
}

// NewManager makes a manager that knows nothing of its server yet.
func NewManager(settings Settings) *Manager {
	made := &Manager{settings: settings, state: state{warned: map[string]bool{}}}
	made.cache = newCache(&made.settings)
	return made
}

// Settings are those that it was made with.
func (m *Manager) Settings() *Settings { return &m.settings }

// Cache has the dictionaries at hand.
func (m *Manager) Cache() *DictionaryCache { return m.cache }

// IsOff tells whether dictionaries are not to be had now, for want of permission.
func (m *Manager) IsOff(now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return now.Before(m.state.offUntil)
}

// IsMissing tells whether it is no use to look for a dictionary now.
func (m *Manager) IsMissing(id uint32, now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return now.Before(m.state.offUntil) || m.state.missing.has(id, now)
}

// Hurry lets the next Refresh look after everything: a connection was lost, and the server may have lost more.
func (m *Manager) Hurry() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.roundAt = time.Time{}
}

// IsNewWarning tells whether a warning is new. Each is told once.
func (m *Manager) IsNewWarning(warning string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.state.warned[warning] || len(m.state.warned) >= mostWarned {
		return false
	}
	m.state.warned[warning] = true
	return true
}

func (m *Manager) warn(x *exchange, format string, arguments ...any) {
	if warning := fmt.Sprintf(format, arguments...); m.IsNewWarning(warning) {
		x.events = append(x.events, Event{Warned, warning})
	}
}

func (m *Manager) isForgotten(id uint32) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Contains(m.state.forgotten, id)
}

// readCatalogue tells whether the server gave what there is.
func (m *Manager) readCatalogue(x *exchange) bool {
	reply, err := x.send("GET", m.settings.CatalogueKey())
	if err != nil {
		if kindOf(err) == Denied {
			m.turnOff(x, err)
		}
		return false
	}
	m.takeCatalogue(x, reply)
	return true
}

// takeCatalogue takes what the catalogue says, and removes the copies of what is forgotten. A reply that is no string is no
// catalogue.
func (m *Manager) takeCatalogue(x *exchange, reply any) {
	content, isThere := reply.(string)
	m.noteCatalogue(x, isThere)
	if m.settings.Given == nil {
		// Permission may have been missing before.
		m.cache.allow(true, x.now)
	}
	var listed document
	var err error
	if isThere {
		listed, err = decode([]byte(content))
	}
	wanted := m.cache.list(listed, x.now)
	if err != nil {
		m.warn(x, "values are written without dictionaries: %v", err)
		return
	}
	m.noteListed(wanted, listed.forgotten)
	if m.settings.HasCopies && len(listed.forgotten) > 0 {
		x.ask(RemoveCopies{listed.forgotten})
	}
}

func (m *Manager) noteCatalogue(x *exchange, isThere bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.readAt = x.now.Add(m.settings.Refresh)
	m.state.offUntil = time.Time{}
	m.state.wanted = nil
	if m.state.isKnown && !isThere {
		x.tell(CatalogueLost)
	}
	m.state.isKnown = isThere
}

func (m *Manager) noteListed(wanted, forgotten []uint32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.wanted, m.state.forgotten = wanted, forgotten
}

// turnOff asks for nothing until a refresh has passed: the keys may not be read.
func (m *Manager) turnOff(x *exchange, reason error) {
	m.mutex.Lock()
	m.state.offUntil = x.now.Add(m.settings.Refresh)
	m.state.readAt = m.state.offUntil
	m.state.wanted = nil
	m.mutex.Unlock()
	m.cache.allow(false, x.now)
	m.warn(x, "dictionaries are off, since the keys %s:* may not be read: %v", m.settings.Prefix, reason)
}
