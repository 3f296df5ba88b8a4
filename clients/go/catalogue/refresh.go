package catalogue

import (
	"errors"
	"time"
)

// leastPause is the time between two refreshes where connections come one after the other: a client opens many at a time.
const leastPause = time.Second

// wake begins to look after dictionaries, unless somebody does.
func (m *DictionaryManager) wake() {
	if m.isAwake.Load() || !m.isAwake.CompareAndSwap(false, true) {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.isClosing {
		m.refreshing.Add(1)
		go m.refreshLoop()
	}
}

// refreshLoop looks after dictionaries from time to time, until the manager or its client is closed.
func (m *DictionaryManager) refreshLoop() {
	defer m.refreshing.Done()
	for {
		pause, err := drive(m.ctx, m, m.server, m.rules.Refresh())
		if errors.Is(err, ErrClosed) {
			m.isAwake.Store(false)
			return
		}
		if !m.rest(pause) {
			m.keepOnceMore()
			return
		}
	}
}

// rest waits until there is something to do. It returns false if the manager is closed.
func (m *DictionaryManager) rest(pause time.Duration) bool {
	next := time.After(pause)
	select {
	case <-m.closing:
		return false
	case <-next:
		return true
	case <-time.After(min(m.rules.Settings().Round(), leastPause)):
	}
	select {
	case <-m.closing:
		return false
	case <-next:
	case <-m.connected:
		m.rules.Hurry()
	}
	return true
}

// keepOnceMore has what values were written with put back that is gone, before nobody is left to do that.
func (m *DictionaryManager) keepOnceMore() {
	if !m.rules.Settings().Writes() || m.rules.IsOff(time.Now()) || m.ctx.Err() != nil {
		return
	}
	connection, end := aside(m.ctx, m.server)
	defer end()
	_, _ = drive(m.ctx, m, connection, m.rules.Keep())
}
