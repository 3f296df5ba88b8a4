package valkeygo

import (
	"errors"
	"slices"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/internal/commands"
)

// restoration is what is to be done with the reply to a command. Commands are recycled when they are sent, so it has what
// it needs of them.
type restoration struct {
	shape    *commands.Shape // nil if there is nothing to be done.
	key      string          // The first key.
	keys     []string        // All keys, where elements of the reply belong to them.
	boundary commands.Boundary
}

func newRestoration(shape *commands.Shape, found commands.Found, words arguments) restoration {
	made := restoration{shape: shape}
	if len(found.Keys) > 0 {
		made.key = words[found.Keys[0]]
	}
	if shape.IsOfArguments() {
		made.keys = make([]string, 0, len(found.Keys))
		for _, at := range found.Keys {
			made.keys = append(made.keys, words[at])
		}
	}
	return made
}

// gather has the dictionaries at hand that a reply needs which comes alone.
func (r restoration) gather(within *compression.Reply, result valkey.ValkeyResult) {
	if r.shape != nil && !r.shape.IsValue() {
		gather(within, messagesOf([]valkey.ValkeyResult{result}), []restoration{r})
	}
}

// restore restores the values in a result, which may be shared: what is changed is a copy. The dictionaries of the result,
// or of all that came with it, are gathered before.
func (r restoration) restore(within *compression.Reply, result valkey.ValkeyResult) valkey.ValkeyResult {
	if r.shape == nil || result.Error() != nil {
		return result
	}
	if r.shape.IsValue() {
		if err := r.restoreValue(within, messageOf(&result)); err != nil {
			return failed(err)
		}
		return result
	}
	// Only what is walked is allocated.
	walked := result
	if err := r.restoreMessage(within, messageOf(&walked)); err != nil {
		return failed(err)
	}
	return walked
}

// restoreMessage restores the values in a reply. The message is the caller's own, but its elements may be shared.
func (r restoration) restoreMessage(within *compression.Reply, message *valkey.ValkeyMessage) error {
	if r.shape == nil {
		return nil
	}
	if r.shape.IsValue() {
		return r.restoreValue(within, message)
	}
	keys := r.keys
	if keys == nil {
		keys = []string{r.key}
	}
	hasMissed := false
	err := r.shape.Walk(reply{message}, keys, func(value commands.Reply, key string) error {
		message := value.(reply).message
		err := restoreText(within, message, key)
		hasMissed = hasMissed || markingOf(message) == marksNull
		return err
	})
	if hasMissed && markingOf(message) == marksMap {
		leaveOutNull(message)
	}
	return err
}

// leaveOutNull leaves out the fields of a map whose values are null. The map is the caller's own.
func leaveOutNull(message *valkey.ValkeyMessage) {
	pairs := elementsOf(message)
	kept := pairs[:0]
	for at := 0; at+1 < len(pairs); at += 2 {
		if markingOf(&pairs[at+1]) != marksNull {
			kept = append(kept, pairs[at], pairs[at+1])
		}
	}
	*lengthOf(message) = int64(len(kept))
}

// restoreValue restores a reply that is a value.
func (r restoration) restoreValue(within *compression.Reply, message *valkey.ValkeyMessage) error {
	if markingOf(message) != marksText {
		return nil
	}
	return restoreText(within, message, r.key)
}

func restoreText(within *compression.Reply, message *valkey.ValkeyMessage, key string) error {
	value, err := within.Restore(key, textOf(message))
	switch {
	case errors.Is(err, compression.ErrMiss):
		setNull(message)
		return nil
	case err == nil:
		setText(message, value)
	}
	return err
}

// gather has the dictionaries at hand that several replies need, each with what is to be done with it.
func gather(within *compression.Reply, messages []*valkey.ValkeyMessage, restorations []restoration) {
	within.Gather(func(yield func(stored string) bool) {
		for at, message := range messages {
			if restorations[at].shape != nil && !eachText(message, yield) {
				return
			}
		}
	})
}

// eachText yields all texts in a reply, values or not.
func eachText(message *valkey.ValkeyMessage, yield func(text string) bool) bool {
	switch markingOf(message) {
	case marksText:
		return yield(textOf(message))
	case marksArray, marksSet, marksMap:
		elements := elementsOf(message)
		for at := range elements {
			if !eachText(&elements[at], yield) {
				return false
			}
		}
	}
	return true
}

// reply is a message that nobody else has.
type reply struct{ message *valkey.ValkeyMessage }

// Text gives a bulk string.
func (r reply) Text() (string, bool) {
	if markingOf(r.message) != marksText {
		return "", false
	}
	return textOf(r.message), true
}

// Elements are those of an array, or the keys and values of a map. They are copied first: values in them are replaced.
func (r reply) Elements() (elements []commands.Reply, isMap, isArray bool) {
	marking := markingOf(r.message)
	isMap, isArray = marking == marksMap, marking == marksArray || marking == marksSet
	if !isMap && !isArray {
		return nil, false, false
	}
	own := slices.Clone(elementsOf(r.message))
	setElements(r.message, own)
	elements = make([]commands.Reply, len(own))
	for at := range own {
		elements[at] = reply{&own[at]}
	}
	return elements, isMap, isArray
}
