package dictionaries

import (
	"maps"
	"slices"
	"time"
)

const (
	// restAfterVain is the time after a look-up in vain until the next one for unknown IDs begins.
	restAfterVain = time.Second
	// mostUnknown is the most unknown IDs of one look-up, and the most IDs that are remembered as missing.
	mostUnknown = 1024
)

// unknown has the IDs that no catalogue has and that readers wait for. Whoever makes them up, they cost at most one look-up
// a second.
type unknown struct {
	waiting    map[uint32]int // Readers of each.
	isLooking  bool
	restsUntil time.Time
}

// rests tells whether one was looked for in vain within the last second.
func (u *unknown) rests(now time.Time) bool { return now.Before(u.restsUntil) }

// join has IDs looked for with the next look-up, whoever does it.
func (u *unknown) join(ids []uint32) {
	if u.waiting == nil {
		u.waiting = map[uint32]int{}
	}
	for _, id := range ids {
		u.waiting[id]++
	}
}

// leave ends the wait of one reader.
func (u *unknown) leave(ids []uint32) {
	for _, id := range ids {
		if u.waiting[id]--; u.waiting[id] <= 0 {
			delete(u.waiting, id)
		}
	}
}

// claim returns the IDs to look for now, without those that the catalogue has turned out to have; none if it is not the
// time. Whoever gets some calls release.
func (u *unknown) claim(now time.Time, isListed func(id uint32) bool) []uint32 {
	if u.isLooking || u.rests(now) {
		return nil
	}
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(u.waiting)), isListed)
	u.isLooking = len(ids) > 0
	return ids[:min(len(ids), mostUnknown)]
}

// release notes that a look-up has ended, and whether one of its IDs was not found.
func (u *unknown) release(isVain bool, now time.Time) {
	u.isLooking = false
	if isVain {
		u.restsUntil = now.Add(restAfterVain)
	}
}
