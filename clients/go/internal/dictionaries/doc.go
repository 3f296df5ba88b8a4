// Package dictionaries has the rules for the dictionaries of one client: what its server is asked about them, and when
// (spec/dictionaries.md).
//
// A [Manager] is a state machine: its tasks say what is to be asked next, and take the answer. A [DictionaryCache] has the
// dictionaries that are at hand, and which of them values are written with. The package knows no connection, goroutine,
// clock or file: package catalogue has those.
package dictionaries
