// Package codecs measures what the codecs of package cache cost and save, beside what was published of them, and prints
// tables.
//
// Candidates run in turns, and the median of the rounds counts. For dictionaries it needs valkey-server and snugly
// (SNUGLY_VALKEY_SERVER, SNUGLY_BIN), and does without where they are not there.
package codecs

import "time"

// Part is something that is measured.
type Part struct {
	Name    string
	Measure func(Settings) error
}

// Parts are all that there are: a page of records at one key, one record without a cache, and records one by one.
var Parts = []Part{{"pages", pages}, {"record", record}, {"records", records}}

// Settings is how much is measured.
type Settings struct {
	Rounds int
	// Round is how long each candidate runs in a round.
	Round time.Duration
	// Records is how many records are measured one by one.
	Records int
}

// trainedFor is how many records dictionaries are trained from for each that is measured.
const trainedFor = 5

// leastTrained are enough to train from.
const leastTrained = 300

// trained is how many other records a dictionary is trained from.
func (s Settings) trained() int { return max(trainedFor*s.Records, leastTrained) }
