package goredis

import (
	"context"

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
		value, err := text(command.Val(), r.key())
		if err != nil {
			return err
		}
		command.SetVal(value)
	case *redis.StatusCmd:
		// SET with GET.
		value, err := text(command.Val(), r.key())
		if err != nil {
			return err
		}
		command.SetVal(value)
	case *redis.Cmd:
		reply := command.Val()
		err := r.walk(&reply, text)
		command.SetVal(reply)
		return err
	case *redis.SliceCmd:
		var reply any = command.Val()
		return r.walk(&reply, text)
	case *redis.JSONSliceCmd:
		var reply any = command.Val()
		return r.walk(&reply, text)
	case *redis.StringSliceCmd:
		var reply any = command.Val()
		return r.walk(&reply, text)
	case *redis.MapStringStringCmd:
		return restoreFields(command.Val(), r.key(), text)
	case *redis.KeyValueSliceCmd:
		pairs := command.Val()
		return restoreEach(len(pairs), r.key(), text, func(at int) *string { return &pairs[at].Value })
	case *redis.ScanCmd:
		page, _ := command.Val()
		return restoreEach(len(page)/2, r.key(), text, func(at int) *string { return &page[2*at+1] })
	case *redis.KeyValuesCmd:
		key, values := command.Val()
		return restoreEach(len(values), key, text, func(at int) *string { return &values[at] })
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
		var reply any = listOf(command.Val())
		return r.walk(&reply, text)
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

// restoreText gives the value of what was stored at a key.
type restoreText func(stored, key string) (string, error)

// restoring gives the values of the replies that see shows. When it meets the first that needs a dictionary which is not at
// hand, it has those of all fetched together.
func restoring(ctx context.Context, compressor *compression.Compressor, see func(text restoreText)) restoreText {
	isGathered := false
	return func(stored, key string) (string, error) {
		if !isGathered && compressor.IsDictionaryMissing(stored) {
			isGathered = true
			compressor.Gather(ctx, func(yield func(stored string) bool) {
				see(func(stored, _ string) (string, error) {
					yield(stored)
					return stored, nil
				})
			})
		}
		return compressor.Restore(ctx, key, stored)
	}
}

// restoreEach restores so many texts, each in its place.
func restoreEach(count int, key string, text restoreText, place func(at int) *string) error {
	for at := range count {
		stored := place(at)
		value, err := text(*stored, key)
		if err != nil {
			return err
		}
		*stored = value
	}
	return nil
}

func restoreFields(fields map[string]string, key string, text restoreText) error {
	for field, stored := range fields {
		value, err := text(stored, key)
		if err != nil {
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
			if err != nil {
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
		if err != nil {
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
}

// part is a reply, or an element of an array. It is one pointer, so that there is nothing to allocate for each.
type part struct{ place *any }

func (p part) put(value string) { *p.place = value }

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
