package goredis

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/internal/commands"
)

// hook compresses what passes through the client of one server.
type hook struct {
	compressor *compression.Compressor
	table      *commands.Table
}

// errNotSent is for the commands of a transaction of which another one is refused.
var errNotSent = errors.New("not sent: another command of the transaction is refused because compression is on")

// DialHook sees that the server may have been another one before.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := next(ctx, network, address)
		if err == nil {
			h.compressor.Dictionaries().Connected()
		}
		return connection, err
	}
}

// ProcessHook is for single commands. It is called at least once for each client, Conn and Tx.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	var within transaction
	return func(ctx context.Context, command redis.Cmder) error {
		sent, restoration, err := h.request(command)
		if err != nil {
			within.refuse(err)
			return err
		}
		restoration.queued, err = within.process(ctx, next, sent, restoration)
		if err != nil {
			return err
		}
		return h.restoreOne(ctx, command, restoration)
	}
}

// ProcessPipelineHook is for pipelines and transactions.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, batch []redis.Cmder) error {
		requests, refused := h.requests(batch)
		if refused != nil && isTransaction(batch) {
			// A part of a transaction is never run.
			for _, each := range requests {
				if each.refused == nil {
					each.command.SetErr(errNotSent)
				}
			}
			return refused
		}
		sent := make([]redis.Cmder, 0, len(batch))
		for _, each := range requests {
			if each.refused == nil {
				sent = append(sent, each.sent)
			}
		}
		if len(sent) == 0 && refused != nil {
			return refused
		}
		err := next(ctx, sent)
		return cmp.Or(err, refused, h.restore(ctx, requests))
	}
}

// request is one command of a batch.
type request struct {
	command, sent redis.Cmder
	restoration   restoration
	refused       error
}

// requests prepares the commands of a batch, and returns the first refusal, if there is one.
func (h *hook) requests(batch []redis.Cmder) (requests []request, refused error) {
	requests = make([]request, len(batch))
	for at, command := range batch {
		sent, restoration, err := h.request(command)
		requests[at] = request{command, sent, restoration, err}
		if err != nil {
			command.SetErr(err)
			if refused == nil {
				refused = err
			}
		}
	}
	return requests, refused
}

// restoreOne restores the reply of a single command. Within ProcessHook, its closures would be allocated for each command.
func (h *hook) restoreOne(ctx context.Context, command redis.Cmder, wanted restoration) error {
	return wanted.restore(command, restoring(ctx, h.compressor, func(text restoreText) { _ = wanted.restore(command, text) }))
}

// restore restores the replies of a batch, and returns the first error.
func (h *hook) restore(ctx context.Context, requests []request) (failed error) {
	for at := range requests {
		requests[at].restoration.queued = queuedBefore(requests, at)
	}
	answered := slices.DeleteFunc(requests, func(each request) bool {
		return each.refused != nil || each.restoration.isNothing() || each.command.Err() != nil
	})
	text := restoring(ctx, h.compressor, func(text restoreText) {
		for _, each := range answered {
			_ = each.restoration.restore(each.command, text)
		}
	})
	for _, each := range answered {
		if err := each.restoration.restore(each.command, text); err != nil {
			each.command.SetErr(err)
			if failed == nil {
				failed = err
			}
		}
	}
	return failed
}

func isTransaction(batch []redis.Cmder) bool {
	for _, command := range batch {
		if command.Name() == "multi" {
			return true
		}
	}
	return false
}

// request is what is sent for a command, and what is to be done with its reply. The command itself is never changed. It
// returns a *compression.RefusedError for a command that must not be sent.
func (h *hook) request(command redis.Cmder) (redis.Cmder, restoration, error) {
	switch command := command.(type) {
	case plain:
		return command.Cmder, restoration{}, nil
	case *encoded:
		// A pipeline of a cluster brings it to another node.
		return command, command.restoration, nil
	}
	arguments := arguments(command.Args())
	if len(arguments) == 0 {
		return command, restoration{}, nil
	}
	row := h.table.Row(arguments.Text(0))
	if row == nil {
		return command, restoration{}, nil
	}
	found := commands.Find(row, arguments)
	if message := commands.Refusal(row, arguments, found); message != "" {
		return nil, restoration{}, &compression.RefusedError{Command: row.Name, Message: message}
	}
	if !row.CarriesValues() {
		return command, restoration{}, nil
	}
	wanted := restoration{shape: row.Shape(found), keys: found.Keys, arguments: arguments}
	if wanted.shape != nil && isUnfit(command) {
		return nil, restoration{}, &compression.RefusedError{Command: row.Name, Message: unfitMessage}
	}
	if len(found.Values) == 0 {
		return command, wanted, nil
	}
	return h.encode(command, arguments, found, wanted), wanted, nil
}
