package valkeygo

import (
	"unsafe"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/internal/commands"
)

// arguments are those of a command, as valkey-go has them.
type arguments []string

// Len is their number, with the name.
func (a arguments) Len() int { return len(a) }

// Text is one of them.
func (a arguments) Text(at int) string { return a[at] }

// look tells where a command has values, and what is to be done with its reply. It returns a *compression.RefusedError
// for a command that must not be sent.
func look(compressor compressing, words arguments) (row *commands.Row, found commands.Found, wanted restoration, err error) {
	if len(words) == 0 {
		return nil, found, wanted, nil
	}
	row = compressor.table.Row(words[0])
	if row == nil {
		return nil, found, restoration{boundary: commands.BoundaryOf(words[0])}, nil
	}
	found = commands.Find(row, words)
	if message := commands.Refusal(row, words, found); message != "" {
		return row, found, wanted, &compression.RefusedError{Command: row.Name, Message: message}
	}
	if shape := row.Shape(found); shape != nil && row.CarriesValues() {
		wanted = newRestoration(shape, found, words)
	}
	return row, found, wanted, nil
}

// builder makes commands, with what a client says of slots.
type builder interface{ B() valkey.Builder }

// request is what is sent for a command, and what is to be done with its reply. The command itself is never changed.
func request(compressor compressing, client builder, command valkey.Completed) (valkey.Completed, restoration, error) {
	words := arguments(command.Commands())
	row, found, wanted, err := look(compressor, words)
	if err != nil || row == nil || !row.CarriesValues() || len(found.Values) == 0 {
		return command, wanted, err
	}
	var changed arguments
	for _, each := range found.Values {
		value := words[each.At]
		compressor.Encode(words[each.Key], unsafe.Slice(unsafe.StringData(value), len(value)), func(envelope []byte) {
			if changed == nil {
				changed = append(changed, words...)
			}
			changed[each.At] = string(envelope)
		})
	}
	if changed == nil {
		return command, wanted, nil
	}
	return rebuilt(client.B(), command, changed, found.Keys[0]), wanted, nil
}

// rebuilt is a command with other arguments, sent to where the command itself would be: the slot is that of its first key
// if it has one, as arguments need not be said to be keys. Commands with values neither block nor only read.
func rebuilt(builder valkey.Builder, command valkey.Completed, words arguments, firstKey int) valkey.Completed {
	built := builder.Arbitrary(words...).Build()
	if command.Slot() != built.Slot() {
		built = built.SetSlot(words[firstKey])
	}
	if command.IsPipe() {
		built = built.ToPipe()
	}
	if command.IsRetryable() {
		built = built.ToRetryable()
	}
	return built
}
