package compression

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// missedEvery is the time from one warning about a missed value to the next.
const missedEvery = time.Minute

// missedLog warns of values that count as missing, as nobody sees their errors. It is for any number of goroutines.
type missedLog struct {
	logger *slog.Logger
	now    func() time.Time

	mutex  sync.Mutex // Guards what follows.
	next   time.Time  // The next warning is not before.
	others int        // Values since the last warning.
}

// newMissedLog makes one that warns by a logger, by default that of the process.
func newMissedLog(logger *slog.Logger) *missedLog {
	return &missedLog{logger: cmp.Or(logger, slog.Default()), now: time.Now}
}

// note warns of a value, unless that was done within the last minute.
func (l *missedLog) note(failure error) {
	if others, isDue := l.isDue(); isDue {
		l.logger.Warn(fmt.Sprintf("snugly: a value counts as missing: %v (and %d others since the last one that was logged)", failure, others))
	}
}

// isDue tells whether it is time for a warning, and how many values had none since the last.
func (l *missedLog) isDue() (others int, isDue bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := l.now()
	if now.Before(l.next) {
		l.others++
		return 0, false
	}
	others, l.others = l.others, 0
	l.next = now.Add(missedEvery)
	return others, true
}
