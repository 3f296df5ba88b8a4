package dictionaries

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"snugly.dev/go/envelope"
)

const (
	// patience is the time that a missing dictionary is waited for, in rounds: within one its holders put it back. It is at
	// least leastPatience, which is long enough for two look-ups for unknown ones, unless Settings.LongestWait is less.
	patience      = 1.5
	leastPatience = 1500 * time.Millisecond
	// firstPause is the time between two look-ups, which doubles up to longestPause.
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
	// missingRounds is the time in which one that was not found is not looked for again, in rounds; at least leastMissing.
	missingRounds = 2
	leastMissing  = time.Second
)

// Found are dictionaries by their IDs.
type Found map[uint32]*envelope.Dictionary

// Fetch looks for dictionaries, all together and for a while. The outcome is those that there are.
func (m *Manager) Fetch(ids []uint32) *Task[Found] {
	wanted := slices.Sorted(slices.Values(ids))
	return newTask(func(x *exchange) Found {
		made := lookup{
			manager: m, exchange: x, wanted: slices.Compact(wanted),
			found: Found{}, asked: map[uint32]bool{}, answered: map[uint32]bool{},
		}
		made.run()
		return made.found
	})
}

// lookup is that of one reader.
type lookup struct {
	manager         *Manager
	exchange        *exchange
	wanted, left    []uint32
	found           Found
	asked, answered map[uint32]bool // IDs that the server was asked for, and those of which it has told.
}

func (l *lookup) run() {
	m, x := l.manager, l.exchange
	until := m.waitsUntil(l.wanted, x.now)
	l.left = slices.Clone(l.wanted)
	unknown := l.unlisted()
	m.join(unknown)
	defer m.leave(unknown)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		l.take(m.cache.get)
		l.look()
		if !m.settings.Waits {
			l.left = slices.DeleteFunc(l.left, func(id uint32) bool { return !l.isWorthWaiting(id) })
		}
		if len(l.left) == 0 || m.IsOff(x.now) || x.now.After(until) || !x.sleep(pause) {
			break
		}
	}
	l.noteMissing(until)
}

// take finds what there is: what is at hand, as another reader may have brought it, or what was loaded.
func (l *lookup) take(from func(id uint32) *envelope.Dictionary) {
	l.left = slices.DeleteFunc(l.left, func(id uint32) bool {
		found := from(id)
		if found != nil {
			l.found[id] = found
		}
		return found != nil
	})
}

func (l *lookup) unlisted() []uint32 {
	return slices.DeleteFunc(slices.Clone(l.left), l.manager.cache.isListed)
}

// look looks once, for unknown ones as well if it is the time.
func (l *lookup) look() {
	m, x := l.manager, l.exchange
	ids := slices.DeleteFunc(slices.Clone(l.left), func(id uint32) bool { return !m.cache.isListed(id) })
	var claimed []uint32
	if len(ids) < len(l.left) {
		claimed = m.claim(x.now)
	}
	if len(ids)+len(claimed) == 0 {
		return
	}
	ids = append(ids, claimed...)
	loaded, isAnswered := m.load(x, ids, len(claimed) > 0)
	if len(claimed) > 0 {
		// An ID that the catalogue turns out to have was not made up.
		isVain := slices.ContainsFunc(claimed, func(id uint32) bool { return loaded[id] == nil && !m.cache.isListed(id) })
		m.release(isVain, x.now)
	}
	for _, id := range ids {
		l.asked[id] = true
		l.answered[id] = l.answered[id] || isAnswered
	}
	// It may be at hand no longer, if there were too many.
	l.take(func(id uint32) *envelope.Dictionary { return loaded[id] })
}

// isWorthWaiting tells whether a client without a dictionary of its own waits for one: the catalogue has it, or it is being
// asked for, or was, and the server was lost.
func (l *lookup) isWorthWaiting(id uint32) bool {
	return l.manager.cache.isListed(id) || !l.answered[id] && (l.asked[id] || !l.manager.rests(l.exchange.now))
}

// noteMissing remembers what was not found. If the reader has left, it is missing from the time on until which it waited.
// What is listed is not, where its holders had less than a round to put it back: it may be there in a moment.
func (l *lookup) noteMissing(until time.Time) {
	m := l.manager
	from := l.exchange.now
	if l.exchange.isBroken {
		from = until
	}
	isCut := m.settings.patience() < m.settings.Round()
	noted := absence{from, from.Add(max(missingRounds*m.settings.Round(), leastMissing))}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, id := range l.wanted {
		if l.asked[id] && l.found[id] == nil && !(isCut && m.cache.isListed(id)) {
			m.state.missing.note(id, noted)
		}
	}
}

// waitsUntil is the time until which a reader waits. If others waited for all of these and have left, it is theirs.
func (m *Manager) waitsUntil(ids []uint32, now time.Time) time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	longest := now.Add(m.settings.patience())
	until := now
	for _, id := range ids {
		left := m.state.missing.leftUntil(id)
		if !now.Before(left) {
			return longest
		}
		if until.Before(left) {
			until = left
		}
	}
	return until
}

func (m *Manager) join(ids []uint32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.unknown.join(ids)
}

func (m *Manager) leave(ids []uint32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.unknown.leave(ids)
}

func (m *Manager) claim(now time.Time) []uint32 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.state.unknown.claim(now, m.cache.isListed)
}

func (m *Manager) release(isVain bool, now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.unknown.release(isVain, now)
}

func (m *Manager) rests(now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.state.unknown.rests(now)
}

// load gets dictionaries, and the catalogue as well, in one round trip. It returns those that there are, and whether the
// server has answered.
func (m *Manager) load(x *exchange, ids []uint32, andCatalogue bool) (loaded Found, isAnswered bool) {
	loaded = Found{}
	if m.settings.HasCopies {
		for _, copied := range x.readCopies(ids) {
			m.prove(x, loaded, copied.ID, copied.Content, copied.Place)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(ids), func(id uint32) bool { return loaded[id] != nil })
	fetched, isAnswered := m.loadFromServer(x, rest, andCatalogue)
	if m.settings.HasCopies && len(fetched) > 0 {
		x.ask(WriteCopies{inOrder(fetched)})
	}
	maps.Copy(loaded, fetched)
	for _, each := range inOrder(loaded) {
		m.cache.hold(each, x.now)
		x.tell(Fetched)
		m.forgetMissing(each.ID())
	}
	return loaded, isAnswered
}

func (m *Manager) forgetMissing(id uint32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.missing.forget(id)
}

func (m *Manager) loadFromServer(x *exchange, ids []uint32, andCatalogue bool) (found Found, isAnswered bool) {
	var commands []Command
	for _, id := range ids {
		commands = append(commands, Command{"GET", m.settings.DictionaryKey(id)})
	}
	if andCatalogue {
		commands = append(commands, Command{"GET", m.settings.CatalogueKey()})
	}
	found = Found{}
	if len(commands) == 0 {
		return found, true
	}
	replies, err := x.sendAll(commands)
	if err != nil {
		return found, false
	}
	if denial := firstDenial(replies); denial != nil {
		m.turnOff(x, denial)
		return found, true
	}
	for at, id := range ids {
		if content, isText := replies[at].(string); isText {
			m.prove(x, found, id, []byte(content), m.settings.DictionaryKey(id))
		}
	}
	if andCatalogue {
		if _, isFailure := replies[len(ids)].(*Failure); !isFailure {
			m.takeCatalogue(x, replies[len(ids)])
		}
	}
	return found, true
}

// prove adds the dictionary of an ID, if that is what something is.
func (m *Manager) prove(x *exchange, found Found, id uint32, content []byte, place string) {
	loaded, err := envelope.LoadDictionary(content)
	if err == nil && loaded.ID() != id {
		err = fmt.Errorf("it is the dictionary %d", loaded.ID())
	}
	if err != nil {
		m.warn(x, "what is at %s is not used: %v", place, err)
		return
	}
	found[id] = loaded
}

// inOrder has dictionaries by their IDs.
func inOrder(found Found) []*envelope.Dictionary {
	all := make([]*envelope.Dictionary, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[id])
	}
	return all
}

func firstDenial(replies []any) error {
	for _, reply := range replies {
		if failure, isFailure := reply.(*Failure); isFailure && failure.Kind == Denied {
			return failure
		}
	}
	return nil
}
