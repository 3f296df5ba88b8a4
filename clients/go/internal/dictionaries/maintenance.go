package dictionaries

import (
	"slices"
	"time"
)

// hurry is the time until the next round while the server cannot be reached.
const hurry = 500 * time.Millisecond

// Refresh does what is to be done now. The outcome is the time in which there is nothing to do.
func (m *Manager) Refresh() *Task[time.Duration] {
	return newTask(func(x *exchange) time.Duration {
		if m.beginsRound(x.now) {
			m.round(x)
		}
		return m.untilRound(x.now)
	})
}

// Keep has the server see that the dictionaries at hand are in use, puts back what is gone, and mends what is wrong.
func (m *Manager) Keep() *Task[struct{}] {
	return newTask(func(x *exchange) struct{} {
		m.keep(x)
		return struct{}{}
	})
}

func (m *Manager) beginsRound(now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if now.Before(m.state.roundAt) {
		return false
	}
	m.state.roundAt = now.Add(m.settings.Round())
	return true
}

func (m *Manager) untilRound(now time.Time) time.Duration {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if soon := now.Add(hurry); m.state.hasFailed && soon.Before(m.state.roundAt) {
		m.state.roundAt = soon
	}
	if !now.Before(m.state.roundAt) {
		return 0
	}
	return m.state.roundAt.Sub(now)
}

// round reads the catalogue if it is time, fetches what it names, chooses what is written with, and keeps it all.
func (m *Manager) round(x *exchange) {
	if !m.settings.Writes() && len(m.cache.IDs()) == 0 || m.IsOff(x.now) {
		return
	}
	if !x.now.Before(m.known().readAt) {
		m.readCatalogue(x)
		if m.IsOff(x.now) {
			return
		}
	}
	wanted := slices.DeleteFunc(slices.Clone(m.known().wanted), m.cache.isHeld)
	if len(wanted) > 0 {
		m.load(x, wanted, false)
	}
	m.cache.choose(x.now)
	if !x.now.Before(m.known().unkeptUntil) {
		m.keep(x)
	}
}

// known is the state at this moment.
func (m *Manager) known() state {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.state
}

func (m *Manager) keep(x *exchange) {
	err := m.lookAfter(x)
	isDenied := err != nil && kindOf(err) == Denied
	m.mutex.Lock()
	// Without permission, the next round tries again.
	m.state.hasFailed = err != nil && !isDenied
	if isDenied {
		m.state.unkeptUntil = x.now.Add(m.settings.Refresh)
	}
	m.mutex.Unlock()
	if isDenied {
		if m.settings.Given != nil {
			m.cache.allow(false, x.now)
		}
		m.warn(x, "dictionaries are not kept from eviction, since that is not allowed: %v", err)
	}
}

func (m *Manager) lookAfter(x *exchange) error {
	held := m.cache.IDs()
	gone, err := m.touch(x, held)
	if err != nil {
		return err
	}
	wrong, err := m.compare(x, held, gone)
	if err != nil {
		return err
	}
	// It may be gone because it is to be forgotten.
	if len(gone)+len(wrong) == 0 || !m.readCatalogue(x) {
		return nil
	}
	if err := m.putBack(x, gone); err != nil {
		return err
	}
	return m.mend(x, wrong)
}

// touch has the server see what is in use, and returns what is not there.
func (m *Manager) touch(x *exchange, held []uint32) (gone []uint32, err error) {
	for _, id := range held {
		reply, err := x.send("TOUCH", m.settings.DictionaryKey(id))
		if err != nil {
			return nil, err
		}
		isThere := isSomething(reply)
		m.note(x, id, isThere && !m.isForgotten(id))
		if !isThere {
			gone = append(gone, id)
		}
	}
	_, err = x.send("TOUCH", m.settings.CatalogueKey())
	return gone, err
}

// compare looks at one dictionary in each round, in turn, and returns it if something else is in its place.
func (m *Manager) compare(x *exchange, held, gone []uint32) (wrong []uint32, err error) {
	if len(held) == 0 {
		return nil, nil
	}
	id := m.nextCompared(held)
	if slices.Contains(gone, id) {
		return nil, nil
	}
	reply, err := x.send("GET", m.settings.DictionaryKey(id))
	if err != nil && kindOf(err) != Refused {
		return nil, err
	}
	// An error is for a key of another type.
	content, isText := reply.(string)
	own := m.cache.get(id)
	if err != nil || isText && own != nil && content != string(own.Bytes()) {
		return []uint32{id}, nil
	}
	return nil, nil
}

func (m *Manager) nextCompared(held []uint32) uint32 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next := slices.IndexFunc(held, func(id uint32) bool { return id > m.state.compared })
	m.state.compared = held[max(next, 0)]
	return m.state.compared
}

// putBack writes what is gone, unless somebody was faster.
func (m *Manager) putBack(x *exchange, ids []uint32) error { return m.write(x, ids, PutBack, "NX") }

// mend overwrites what is wrong.
func (m *Manager) mend(x *exchange, ids []uint32) error { return m.write(x, ids, Mended) }

// write sets dictionaries that are not forgotten, and tells of each that was set.
func (m *Manager) write(x *exchange, ids []uint32, done EventKind, options ...string) error {
	for _, id := range ids {
		// One that was given is at hand, whatever the catalogue says.
		own := m.cache.get(id)
		if own == nil || m.isForgotten(id) {
			continue
		}
		reply, err := x.send(append(Command{"SET", m.settings.DictionaryKey(id), string(own.Bytes())}, options...)...)
		switch {
		case err == nil:
			if isSomething(reply) {
				x.tell(done)
			}
			m.note(x, id, true)
		case kindOf(err) == Lost:
			return err
		default:
			// The server may take another one, and this one another time.
			m.warn(x, "dictionaries are not kept from eviction, since the server does not take them: %v", err)
		}
	}
	return nil
}

// note has the dictionary that was given written with only while it is beside the data.
func (m *Manager) note(x *exchange, id uint32, isThere bool) {
	if m.settings.isGiven(id) {
		m.cache.allow(isThere, x.now)
	}
}
