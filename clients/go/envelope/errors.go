package envelope

import "fmt"

// Kind is the defect of an envelope that cannot be read. It is a short name that never changes and is the same in
// every language.
type Kind string

// The kinds of errors, in the order in which they are looked for.
const (
	// UnknownBackend is for an envelope of a backend that this version does not know.
	UnknownBackend Kind = "unknown_backend"
	// Corrupt is for a payload that is cut, damaged, followed by bytes, or does not decode to what it claims.
	Corrupt Kind = "corrupt"
	// DictionaryMissing is for a payload whose dictionary is not to be had.
	DictionaryMissing Kind = "dictionary_missing"
	// TooLarge is for a value that is, or claims to be, longer than Options.MaxDecompressedSize.
	TooLarge Kind = "too_large"
)

// UndecodableError is an envelope that cannot be read.
type UndecodableError struct {
	// Kind is the defect.
	Kind Kind
	// Key is that of the envelope; empty if that is not known.
	Key string
	// Backend is the backend's number in the envelope.
	Backend byte
	// Stored is a copy of the envelope.
	Stored []byte
	// Dictionary is the ID of the dictionary that is missing; 0 for other kinds.
	Dictionary uint32
	// Reason says what is wrong, in words.
	Reason string
	// Err is the reason why a dictionary could not be fetched, if that was an error.
	Err error
}

// Error says what could not be read, where it is, and why.
func (e *UndecodableError) Error() string {
	at, cause := "", ""
	if e.Key != "" {
		at = fmt.Sprintf(", at key %q", e.Key)
	}
	if e.Err != nil {
		cause = ": " + e.Err.Error()
	}
	return fmt.Sprintf("cannot decode an envelope of %d bytes, backend %02x%s: %s%s", len(e.Stored), e.Backend, at, e.Reason, cause)
}

// Unwrap returns why a dictionary could not be fetched.
func (e *UndecodableError) Unwrap() error { return e.Err }

// OptionError is an option with a value that it cannot have.
type OptionError struct {
	// Option is its name.
	Option string
	// Value is the one that was given.
	Value any
	// Allowed says what may be given, in words.
	Allowed string
}

// Error says what was given, and what is allowed.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s is %v: %s", e.Option, e.Value, e.Allowed)
}

// DictionaryError is for bytes that are not taken as a dictionary.
type DictionaryError struct {
	// Kind is not_a_dictionary, wrong_id or too_large.
	Kind string
	// Reason says what is wrong, in words.
	Reason string
}

// Error says what is wrong.
func (e *DictionaryError) Error() string { return e.Reason }
