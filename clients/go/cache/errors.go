package cache

import (
	"errors"
	"fmt"
	"strings"

	"snugly.dev/go/envelope"
)

var (
	// ErrMiss is for a key that is not in the cache.
	ErrMiss = errors.New("not in the cache")
	// ErrNotFound is for something that does not exist. Loaders return it, or an error that wraps it, and for
	// Options.NegativeTTL the cache does then.
	ErrNotFound = errors.New("does not exist")
	// ErrClosed is for a load after Close.
	ErrClosed = errors.New("the cache is closed")
)

// DecodeError is an entry that cannot be read.
type DecodeError struct {
	// Key is that of the entry, as the server knows it.
	Key string
	// Stored is the entry.
	Stored []byte
	// Err says what is wrong with it: an *envelope.UndecodableError, or an error of the codec.
	Err error
}

// Error says what could not be read, and why.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("cannot read the entry of %d bytes at key %q: %v", len(e.Stored), e.Key, e.Err)
}

// Unwrap returns what is wrong with the entry.
func (e *DecodeError) Unwrap() error { return e.Err }

// EncodeError is a value that has no form in JSON or MessagePack, such as a channel or, in JSON, a NaN.
type EncodeError struct {
	// Key is that of the entry that was to be stored, as the server knows it.
	Key string
	// Err is the error of the codec.
	Err error
}

// Error says what could not be stored, and why.
func (e *EncodeError) Error() string {
	return fmt.Sprintf("cannot encode the value for key %q: %v", e.Key, e.Err)
}

// Unwrap returns the error of the codec.
func (e *EncodeError) Unwrap() error { return e.Err }

// OptionError is an option with a value that it cannot have: that of package envelope.
type OptionError = envelope.OptionError

// TypeError is a type whose values cannot be stored as MessagePack, or not as safely as they should be.
type TypeError struct {
	// Type is its name.
	Type string
	// Problems says what is wrong and what to do, a line for each field.
	Problems []string
}

// Error says what is wrong with which field, and what to do.
func (e *TypeError) Error() string {
	return fmt.Sprintf("%s cannot be stored as MessagePack: %s", e.Type, strings.Join(e.Problems, "; "))
}
