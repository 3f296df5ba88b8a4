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
}

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
	_, isUnfit := command.(*redis.ZeroCopyStringCmd)
	return isUnfit
}

// restore restores the values in the reply that a command has got. Raw replies stay as they are.
func (r *restoration) restore(ctx context.Context, compressor *compression.Compressor, command redis.Cmder) error {
	if r.shape == nil {
		return nil
	}
	text := func(stored, key string) (string, error) { return compressor.Restore(ctx, key, stored) }
	switch command := command.(type) {
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
		return r.walk(&slot{command.Val(), func(value any) { command.SetVal(value) }}, text)
	case *redis.SliceCmd:
		return r.walk(&slot{command.Val(), nil}, text)
	case *redis.StringSliceCmd:
		return r.walk(&slot{command.Val(), nil}, text)
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
	}
	return nil
}

// restore gives the value of what was stored at a key.
type restoreText func(stored, key string) (string, error)

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
func (r *restoration) walk(reply *slot, text restoreText) error {
	keys := make([]string, len(r.keys))
	for at, place := range r.keys {
		keys[at] = r.arguments.Text(place)
	}
	return r.shape.Walk(reply, keys, func(reply commands.Reply, key string) error {
		stored, _ := reply.Text()
		value, err := text(stored, key)
		if err != nil {
			return err
		}
		if found := reply.(*slot); found.set != nil {
			found.set(value)
		}
		return nil
	})
}

// slot is a reply, or a part of one, and how something else is put in its place.
type slot struct {
	reply any
	set   func(value any)
}

// Text gives a bulk string.
func (s *slot) Text() (string, bool) {
	text, isText := s.reply.(string)
	return text, isText
}

// Elements are those of an array, or the keys and values of a map.
func (s *slot) Elements() (elements []commands.Reply, isMap, isArray bool) {
	switch reply := s.reply.(type) {
	case []any:
		for at, element := range reply {
			elements = append(elements, &slot{element, func(value any) { reply[at] = value }})
		}
		return elements, false, true
	case []string:
		for at, element := range reply {
			elements = append(elements, &slot{element, func(value any) { reply[at] = value.(string) }})
		}
		return elements, false, true
	case map[any]any:
		for key, element := range reply {
			elements = append(elements, &slot{key, nil}, &slot{element, func(value any) { reply[key] = value }})
		}
		return elements, true, false
	}
	return nil, false, false
}
