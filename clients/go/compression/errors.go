package compression

import "errors"

// ErrMiss is for an envelope that cannot be read where the application is to see no value: the packages of clients give
// what their library does for a key that is not there.
var ErrMiss = errors.New("what is stored cannot be read, and counts as missing")

// RefusedError is a command that the server would run on compressed bytes. It has not been sent.
type RefusedError struct {
	// Command is its name in capitals.
	Command string
	// Message says why, as every client does.
	Message string
}

// Error is the message.
func (e *RefusedError) Error() string { return e.Message }
