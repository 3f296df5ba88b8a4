package catalogue

import (
	"context"
	"sync"
	"time"
)

const (
	// A missing dictionary is waited for for so many rounds: within one its holders put it back. At least a second.
	patience      = 1.5
	leastPatience = time.Second
	// One that was not found is not looked for again for so many rounds. At least a second.
	missing = 2

	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
	// mostMissing is how many dictionaries are remembered that are not there.
	mostMissing = 1000
)

// search looks for the dictionaries that somebody waits for: all of them in turn, by one goroutine and over one way, which
// end with the last who waits. So whoever makes up IDs takes neither connections nor goroutines.
type search struct {
	ctx    context.Context // Ends with the keeper.
	server Server
	round  time.Duration
	// look asks once. It is hopeless if there is nothing to be had over that way any more.
	look func(ctx context.Context, way Server, id uint32) (isFound, isHopeless bool)

	running sync.WaitGroup
	changed chan struct{} // Wakes the goroutine while it waits for the next to be due.

	mutex     sync.Mutex // Guards what follows.
	isRunning bool
	wanted    map[uint32]*wanted
	notThere  map[uint32]absence
}

// absence is when a dictionary is not looked for: it was not found, or not until the last who waited for it had left.
type absence struct{ from, until time.Time }

// wanted is a dictionary that is looked for.
type wanted struct {
	id         uint32
	waiting    int // How many wait for it.
	due, until time.Time
	pause      time.Duration
	done       chan struct{}
}

func newSearch(ctx context.Context, server Server, round time.Duration, look func(context.Context, Server, uint32) (bool, bool)) *search {
	return &search{
		ctx: ctx, server: server, round: round, look: look,
		changed: make(chan struct{}, 1), wanted: map[uint32]*wanted{}, notThere: map[uint32]absence{},
	}
}

// wait waits until all these dictionaries have been found, or are known not to be there.
func (s *search) wait(ctx context.Context, ids ...uint32) error {
	var all []*wanted
	defer func() {
		for _, each := range all {
			s.leave(each)
		}
	}()
	for _, id := range ids {
		if joined := s.join(id); joined != nil {
			all = append(all, joined)
		}
	}
	for _, each := range all {
		select {
		case <-each.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// join begins to wait for a dictionary; nil if that is of no use.
func (s *search) join(id uint32) *wanted {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	known := s.notThere[id]
	if s.ctx.Err() != nil || !now.Before(known.from) && now.Before(known.until) {
		return nil
	}
	joined := s.wanted[id]
	if joined == nil {
		until := now.Add(s.rounds(patience))
		if now.Before(known.from) {
			// Others have waited already.
			until = known.from
		}
		joined = &wanted{id: id, due: now, until: until, pause: firstPause, done: make(chan struct{})}
		s.wanted[id] = joined
		s.wake()
	}
	joined.waiting++
	return joined
}

// leave ends waiting. What nobody waits for is not looked for.
func (s *search) leave(left *wanted) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left.waiting--
	if left.waiting == 0 && s.wanted[left.id] == left {
		delete(s.wanted, left.id)
		s.rememberMissing(left.id, left.until)
		s.wake()
	}
}

// wake has the goroutine see what has changed, and starts it if there is none. The caller has the mutex.
func (s *search) wake() {
	if !s.isRunning {
		s.isRunning = true
		s.running.Add(1)
		go s.run()
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run looks for what is wanted until nothing is.
func (s *search) run() {
	defer s.running.Done()
	way, end := s.server.Aside()
	defer end()
	// Not every library ends a command with its context.
	defer context.AfterFunc(s.ctx, end)()
	for {
		first := s.first()
		if first == nil {
			return
		}
		if pause := time.Until(first.due); pause > 0 {
			select {
			case <-s.changed:
			case <-time.After(pause):
			}
			continue
		}
		isFound, isHopeless := s.look(s.ctx, way, first.id)
		s.note(first, isFound, isHopeless)
	}
}

// first is what is due first; nil if nothing is wanted any more.
func (s *search) first() *wanted {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var first *wanted
	for _, each := range s.wanted {
		if first == nil || each.due.Before(first.due) {
			first = each
		}
	}
	s.isRunning = first != nil
	return first
}

// note notes how looking for a dictionary went.
func (s *search) note(looked *wanted, isFound, isHopeless bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	switch {
	case s.wanted[looked.id] != looked:
		return // Everybody has left.
	case !isFound && !isHopeless && now.Before(looked.until):
		looked.due = now.Add(looked.pause)
		looked.pause = min(2*looked.pause, longestPause)
		return
	case !isFound:
		s.rememberMissing(looked.id, now)
	default:
		delete(s.notThere, looked.id)
	}
	delete(s.wanted, looked.id)
	close(looked.done)
}

// rememberMissing notes that there is no use in looking for a dictionary for some time from then on.
func (s *search) rememberMissing(id uint32, from time.Time) {
	now := time.Now()
	for other, known := range s.notThere {
		if len(s.notThere) < mostMissing && now.Before(known.until) {
			break
		}
		delete(s.notThere, other)
	}
	s.notThere[id] = absence{from, from.Add(s.rounds(missing))}
}

// rounds is how long so many rounds take, at least a second.
func (s *search) rounds(count float64) time.Duration {
	return max(time.Duration(count*float64(s.round)), leastPatience)
}

// close waits until the search has ended, whose context has. Those who wait are told that there is nothing.
func (s *search) close() {
	s.mutex.Lock()
	for id, each := range s.wanted {
		delete(s.wanted, id)
		close(each.done)
	}
	if s.isRunning {
		s.wake()
	}
	s.mutex.Unlock()
	s.running.Wait()
}
