package cache

import (
	"bytes"
	"errors"

	"snugly.dev/go/envelope"
)

// entry is the find at a key.
type entry struct {
	stored  []byte // nil for nothing.
	isStale bool
	// tooLarge is why the backend's client has not restored it, which the cache must not do then either; nil if it has.
	tooLarge *envelope.UndecodableError
}

// isValue tells whether there is something that says what the value is.
func (e entry) isValue() bool { return e.stored != nil && e.tooLarge == nil && !isNotFound(e.stored) }

// own is the entry for what others read, too: its value shares no memory with what is stored.
func (e entry) own() entry {
	if len(e.stored) > 0 && e.stored[0] >= leastMsgp {
		e.stored = bytes.Clone(e.stored)
	}
	return e
}

// foundOne is what a backend has returned for a key.
func foundOne(stored []byte, err error) (entry, error) {
	tooLarge := (*envelope.UndecodableError)(nil)
	if errors.As(err, &tooLarge) {
		return entry{stored: tooLarge.Stored, tooLarge: tooLarge}, nil
	}
	return entry{stored: stored}, err
}

// foundMany is what a backend has returned for keys of the server, with the errors of those that are too large.
func foundMany(keys []string, stored [][]byte, err error) ([]entry, error) {
	tooLarge := map[string]entry{}
	for _, each := range parts(err) {
		found, other := foundOne(nil, each)
		if other != nil {
			return nil, err
		}
		tooLarge[found.tooLarge.Key] = found
	}
	all := make([]entry, len(keys))
	for at, key := range keys {
		all[at].stored = stored[at]
		if stored[at] == nil {
			// Nothing, if it is not too large.
			all[at] = tooLarge[key]
		}
	}
	return all, nil
}

// parts are the errors that one joins.
func parts(err error) []error {
	if joined, isJoined := err.(interface{ Unwrap() []error }); isJoined {
		return joined.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}
