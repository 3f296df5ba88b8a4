package catalogue

import (
	"context"
	"fmt"
	"time"

	"snugly.dev/go/envelope"
)

// fetch is a search for dictionaries that goes on for as long as somebody waits for one of them.
type fetch struct {
	ids     []uint32
	waiting int // Readers.
	end     context.CancelFunc
	done    chan struct{}
}

// Fetch gets a dictionary from the server, once for all who wait for it. One that the catalogue names is waited for for up
// to one and a half rounds, or as long as ctx or the ReplyTimeout of the server allows; for others there is one look-up a
// second. The error says where the dictionary should have been, and wraps the cause of the end of ctx, if that was the
// reason.
func (m *DictionaryManager) Fetch(ctx context.Context, id uint32) (*envelope.Dictionary, error) {
	if err := m.FetchAll(ctx, id); err != nil {
		return nil, fmt.Errorf("nothing was fetched from the key %q: %w", m.rules.Settings().DictionaryKey(id), err)
	}
	found := m.AtHand(id)
	switch {
	case found != nil:
		return found, nil
	case m.rules.IsOff(time.Now()):
		return nil, fmt.Errorf("dictionaries are off, since the keys %s:* may not be read: allow GET for them", m.options.Prefix)
	}
	return nil, fmt.Errorf("nothing could be fetched from the key %q: if it is gone there, store the value anew", m.rules.Settings().DictionaryKey(id))
}

// FetchAll is Fetch for several at a time, so that those which are not there take no longer than one does. They are at
// hand then, or known not to be there. The error is the cause of the end of ctx.
func (m *DictionaryManager) FetchAll(ctx context.Context, ids ...uint32) error {
	if ctx.Err() != nil {
		// Nobody is to begin what nobody waits for.
		return context.Cause(ctx)
	}
	joined := m.join(ids)
	defer m.leave(joined)
	for each := range joined {
		select {
		case <-each.done:
		case <-m.ctx.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// join begins to wait for those dictionaries that are not at hand and may be there. Those that nobody looks for are looked
// for together.
func (m *DictionaryManager) join(ids []uint32) map[*fetch]bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.hasEnded {
		return nil
	}
	joined := map[*fetch]bool{}
	var own []uint32
	for _, id := range ids {
		switch running := m.fetching[id]; {
		case m.cache.AtHand(id) != nil:
		case running != nil:
			joined[running] = true
		case !m.rules.IsMissing(id, time.Now()):
			own = append(own, id)
		}
	}
	if len(own) > 0 {
		joined[m.begin(own)] = true
	}
	for each := range joined {
		each.waiting++
	}
	return joined
}

// begin starts a search. The caller has the mutex.
func (m *DictionaryManager) begin(ids []uint32) *fetch {
	ctx, end := context.WithCancel(m.ctx)
	made := &fetch{ids: ids, end: end, done: make(chan struct{})}
	for _, id := range ids {
		m.fetching[id] = made
	}
	m.running.Add(1)
	go m.search(ctx, made)
	return made
}

// search looks for dictionaries until they are found, or known not to be there.
func (m *DictionaryManager) search(ctx context.Context, of *fetch) {
	defer m.running.Done()
	m.connection.join()
	defer m.connection.leave()
	_, _ = drive(ctx, m, m.connection, m.rules.Fetch(of.ids))
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.forget(of)
	close(of.done)
}

// leave ends waiting. What nobody waits for is not looked for.
func (m *DictionaryManager) leave(joined map[*fetch]bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for each := range joined {
		if each.waiting--; each.waiting == 0 {
			m.forget(each)
		}
	}
}

// forget ends a search, so that nobody joins it any more. The caller has the mutex.
func (m *DictionaryManager) forget(ended *fetch) {
	ended.end()
	for _, id := range ended.ids {
		if m.fetching[id] == ended {
			delete(m.fetching, id)
		}
	}
}
