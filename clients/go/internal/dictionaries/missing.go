package dictionaries

import "time"

// missing has the IDs that were looked for in vain, the oldest first in order.
type missing struct {
	absences map[uint32]absence
	order    []uint32
}

// absence is the time in which an ID is not looked for. Before that, a reader has left who waited for it until then.
type absence struct{ from, until time.Time }

// note remembers an ID, and forgets the oldest ones if there are too many.
func (m *missing) note(id uint32, noted absence) {
	if m.absences == nil {
		m.absences = map[uint32]absence{}
	}
	if _, isKnown := m.absences[id]; !isKnown {
		m.order = append(m.order, id)
	}
	m.absences[id] = noted
	for len(m.order) > mostUnknown {
		delete(m.absences, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *missing) forget(id uint32) {
	if _, isKnown := m.absences[id]; !isKnown {
		return
	}
	delete(m.absences, id)
	for at, other := range m.order {
		if other == id {
			m.order = append(m.order[:at:at], m.order[at+1:]...)
			return
		}
	}
}

// has tells whether an ID is not looked for now.
func (m *missing) has(id uint32, now time.Time) bool {
	noted := m.absences[id]
	return !now.Before(noted.from) && now.Before(noted.until)
}

// leftUntil is the time until which a reader who has left waited for an ID; not after now for none.
func (m *missing) leftUntil(id uint32) time.Time { return m.absences[id].from }
