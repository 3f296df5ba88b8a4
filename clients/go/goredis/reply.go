package goredis

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/internal/commands"
)

// restoration is what is to be done with the reply to a command.
type restoration struct {
	shape     *commands.Shape // nil if there is nothing to be done.
	keys      []int
	arguments arguments
	queued    []restoration // Of EXEC: what is to be done with each element.
	hasMissed bool          // A text of the reply is missed.
}

func (r *restoration) isNothing() bool { return r.shape == nil && r.queued == nil }

// key is the first key of the command.
func (r *restoration) key() string {
	if len(r.keys) == 0 {
		return ""
	}
	return r.arguments.Text(r.keys[0])
}

// unfitMessage is for commands whose replies go where a restored value does not fit.
const unfitMessage = "GET into a buffer is refused because compression is on: the value may be longer than what is stored; use Get"

// isUnfit tells whether the reply to a command goes where a restored value may not fit.
func isUnfit(command redis.Cmder) bool {
	_, isUnfit := given(command).(*redis.ZeroCopyStringCmd)
	return isUnfit
}

// restore restores the values in the reply that a command has got. Raw replies stay as they are, and so do those that were
// read as something of another shape.
func (r *restoration) restore(command redis.Cmder, text restoreText) error {
	if r.queued != nil {
		return r.restoreQueued(command, text)
	}
	if r.shape == nil {
		return nil
	}
	switch command := given(command).(type) {
	case *redis.StringCmd:
		return r.restoreAlone(command, text)
	case *redis.StatusCmd:
		// SET with GET.
		return r.restoreAlone(command, text)
	case *redis.Cmd:
		reply := command.Val()
		hadReply := reply != nil
		err := r.walk(&reply, text)
		command.SetVal(reply)
		if err == nil && reply == nil && hadReply {
			return redis.Nil
		}
		return err
	case *redis.SliceCmd:
		var reply any = command.Val()
		return r.walk(&reply, text)
	case *redis.JSONSliceCmd:
		var reply any = command.Val()
		return r.walk(&reply, text)
	case *redis.StringSliceCmd:
		var reply any = command.Val()
		err := r.walk(&reply, text)
		if r.hasMissed {
			command.SetVal(slices.DeleteFunc(command.Val(), isMissed))
		}
		return err
	case *redis.MapStringStringCmd:
		return restoreFields(command.Val(), r.key(), text)
	case *redis.KeyValueSliceCmd:
		pairs := command.Val()
		err := r.restoreEach(len(pairs), r.key(), text, func(at int) *string { return &pairs[at].Value })
		if r.hasMissed {
			command.SetVal(slices.DeleteFunc(pairs, func(pair redis.KeyValue) bool { return isMissed(pair.Value) }))
		}
		return err
	case *redis.ScanCmd:
		page, cursor := command.Val()
		err := r.restoreEach(len(page)/2, r.key(), text, func(at int) *string { return &page[2*at+1] })
		if r.hasMissed {
			command.SetVal(withoutMissed(page), cursor)
		}
		return err
	case *redis.KeyValuesCmd:
		key, values := command.Val()
		err := r.restoreEach(len(values), key, text, func(at int) *string { return &values[at] })
		if r.hasMissed {
			command.SetVal(key, slices.DeleteFunc(values, isMissed))
		}
		return err
	case *redis.XMessageSliceCmd:
		return restoreMessages(command.Val(), r.key(), text)
	case *redis.XStreamSliceCmd:
		for _, stream := range command.Val() {
			if err := restoreMessages(stream.Messages, stream.Stream, text); err != nil {
				return err
			}
		}
	case *redis.XAutoClaimCmd:
		messages, _ := command.Val()
		return restoreMessages(messages, r.key(), text)
	case *redis.XAutoClaimWithDeletedCmd:
		messages, _, _ := command.Val()
		return restoreMessages(messages, r.key(), text)
	case *redis.StringSliceSliceCmd:
		lists := command.Val()
		var reply any = listOf(lists)
		err := r.walk(&reply, text)
		for at := range lists {
			if r.hasMissed {
				lists[at] = slices.DeleteFunc(lists[at], isMissed)
			}
		}
		return err
	case *redis.StringStructMapCmd:
		return throughList(r, text, command, textsOf, setOf)
	case *redis.MapStringInterfaceCmd:
		return throughList(r, text, command, pairsOf[any], mapOf[any])
	case *redis.MapMapStringInterfaceCmd:
		return throughList(r, text, command, rowsOf, mapOfRows)
	case *redis.MapStringStringSliceCmd:
		return throughList(r, text, command, pairsOfEach[string], mapOfEach[string])
	case *redis.MapStringInterfaceSliceCmd:
		return throughList(r, text, command, pairsOfEach[any], mapOfEach[any])
	}
	return nil
}

// restoreQueued restores the reply to EXEC, which has those to the commands that were queued.
func (r *restoration) restoreQueued(command redis.Cmder, text restoreText) error {
	replies := repliesOf(command)
	if len(replies) != len(r.queued) {
		return nil
	}
	for at := range replies {
		if queued := &r.queued[at]; queued.shape != nil {
			if err := queued.walk(&replies[at], text); err != nil {
				return err
			}
		}
	}
	return nil
}

// restoreAlone restores a reply that is one value.
func (r *restoration) restoreAlone(command valued[string], text restoreText) error {
	value, err := text(command.Val(), r.key())
	if errors.Is(err, compression.ErrMiss) {
		command.SetVal("")
		return redis.Nil
	}
	if err == nil {
		command.SetVal(value)
	}
	return err
}

// missed is what takes the place of a text that is missed where only texts can be, until it is left out. It is known by
// where it is: nothing that a server sends is there.
var missed = string([]byte{'!'})

func isMissed(text string) bool {
	return len(text) == len(missed) && unsafe.StringData(text) == unsafe.StringData(missed)
}

// withoutMissed leaves out the pairs of names and values whose values are missed.
func withoutMissed(pairs []string) []string {
	kept := pairs[:0]
	for at := 0; at+1 < len(pairs); at += 2 {
		if !isMissed(pairs[at+1]) {
			kept = append(kept, pairs[at], pairs[at+1])
		}
	}
	return kept
}

// restoreText gives the value of what was stored at a key. The error is compression.ErrMiss for what is not to be seen.
type restoreText func(stored, key string) (string, error)

// restoring gives the values of the replies that see shows. When it meets the first that needs a dictionary which is not at
// hand, it has those of all fetched together.
func restoring(ctx context.Context, compressor *compression.Compressor, see func(text restoreText)) restoreText {
	isGathered := false
	reply := compressor.Reply(ctx)
	return func(stored, key string) (string, error) {
		if !reply.NeedsDictionary(stored) {
			return reply.RestoreAtHand(key, stored)
		}
		if !isGathered {
			isGathered = true
			reply.Gather(func(yield func(stored string) bool) {
				see(func(stored, _ string) (string, error) {
					yield(stored)
					return stored, nil
				})
			})
		}
		return reply.Restore(key, stored)
	}
}

// restoreEach restores so many texts, each in its place.
func (r *restoration) restoreEach(count int, key string, text restoreText, place func(at int) *string) error {
	for at := range count {
		stored := place(at)
		value, err := text(*stored, key)
		switch {
		case errors.Is(err, compression.ErrMiss):
			r.hasMissed, value = true, missed
		case err != nil:
			return err
		}
		*stored = value
	}
	return nil
}

func restoreFields(fields map[string]string, key string, text restoreText) error {
	for field, stored := range fields {
		value, err := text(stored, key)
		switch {
		case errors.Is(err, compression.ErrMiss):
			delete(fields, field)
			continue
		case err != nil:
			return err
		}
		fields[field] = value
	}
	return nil
}

func restoreMessages(messages []redis.XMessage, key string, text restoreText) error {
	for _, message := range messages {
		for field, stored := range message.Values {
			stored, isText := stored.(string)
			if !isText {
				continue
			}
			value, err := text(stored, key)
			switch {
			case errors.Is(err, compression.ErrMiss):
				delete(message.Values, field)
				continue
			case err != nil:
				return err
			}
			message.Values[field] = value
		}
	}
	return nil
}

// walk restores what the shape finds in a reply.
func (r *restoration) walk(reply *any, text restoreText) error {
	keys := make([]string, len(r.keys))
	for at, place := range r.keys {
		keys[at] = r.arguments.Text(place)
	}
	return r.shape.Walk(part{reply}, keys, func(reply commands.Reply, key string) error {
		stored, _ := reply.Text()
		value, err := text(stored, key)
		switch {
		case errors.Is(err, compression.ErrMiss):
			r.hasMissed = true
			reply.(slot).clear()
			return nil
		case err != nil:
			return err
		}
		if value != stored {
			reply.(slot).put(value)
		}
		return nil
	})
}

// slot is a part of a reply in whose place a value can be put.
type slot interface {
	commands.Reply
	put(value string)
	// clear has nothing there.
	clear()
}

// part is a reply, or an element of an array. It is one pointer, so that there is nothing to allocate for each.
type part struct{ place *any }

func (p part) put(value string) { *p.place = value }

func (p part) clear() { *p.place = nil }

// Text gives a bulk string.
func (p part) Text() (string, bool) {
	text, isText := (*p.place).(string)
	return text, isText
}

// Elements are those of an array, or the keys and values of a map.
func (p part) Elements() (elements []commands.Reply, isMap, isArray bool) {
	switch reply := (*p.place).(type) {
	case []any:
		elements = make([]commands.Reply, len(reply))
		for at := range reply {
			elements[at] = part{&reply[at]}
		}
		return elements, false, true
	case []string:
		elements = make([]commands.Reply, len(reply))
		for at := range reply {
			elements[at] = textPart{&reply[at]}
		}
		return elements, false, true
	case map[any]any:
		for key, element := range reply {
			elements = append(elements, part{&key}, field{part{&element}, reply, key})
		}
		return elements, true, false
	}
	return nil, false, false
}

// textPart is an element of a slice of texts.
type textPart struct{ place *string }

func (t textPart) put(value string) { *t.place = value }

func (t textPart) clear() { *t.place = missed }

// Text is the text.
func (t textPart) Text() (string, bool) { return *t.place, true }

// Elements are none.
func (t textPart) Elements() (elements []commands.Reply, isMap, isArray bool) {
	return nil, false, false
}

// field is a value of a map.
type field struct {
	part
	of  map[any]any
	key any
}

func (f field) put(value string) { f.of[f.key] = value }

func (f field) clear() { delete(f.of, f.key) }
