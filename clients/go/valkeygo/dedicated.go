package valkeygo

import (
	"context"
	"sync"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/internal/commands"
)

// dedicated is a client that has a connection for itself, and with that may begin a transaction in one call and end it in
// another.
type dedicated struct {
	valkey.DedicatedClient
	compressor compressing
	mutex      sync.Mutex
	within     transaction
}

func (c *Client) dedicated(inner valkey.DedicatedClient) valkey.DedicatedClient {
	return &dedicated{DedicatedClient: inner, compressor: c.compressor}
}

// Do is that of a valkey.DedicatedClient.
func (d *dedicated) Do(ctx context.Context, command valkey.Completed) valkey.ValkeyResult {
	sent, restoration, err := request(d.compressor, d.DedicatedClient, command)
	if err != nil {
		d.refuse(err)
		return failed(err)
	}
	if restoration.boundary == commands.Runs {
		if refused := d.discard(ctx); refused != nil {
			return failed(refused)
		}
	}
	result := d.DedicatedClient.Do(ctx, sent)
	d.compressor.saw(result)
	reply := d.compressor.Reply(ctx)
	restoration.gather(&reply, result)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.within.restore(&reply, restoration, result)
}

// DoMulti is that of a valkey.DedicatedClient.
func (d *dedicated) DoMulti(ctx context.Context, multi ...valkey.Completed) []valkey.ValkeyResult {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return doMulti(ctx, d.compressor, d.DedicatedClient, multi, &d.within)
}

func (d *dedicated) refuse(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.within.refuse(err)
}

func (d *dedicated) discard(ctx context.Context) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.within.discard(ctx, d.DedicatedClient)
}

// transaction is what was queued since MULTI: what is to be done with the elements of EXEC's reply.
type transaction struct {
	isOpen  bool
	queued  []restoration
	refused error // Why it must not be run; nil if it may be.
}

// refuse notes that a command of the transaction was refused, if there is one.
func (t *transaction) refuse(err error) {
	if t.isOpen && t.refused == nil {
		t.refused = err
	}
}

// discard ends a transaction of which a command was refused, and returns why that was; nil if none was.
func (t *transaction) discard(ctx context.Context, client core) error {
	refused := t.refused
	// Without an answer of the server, the transaction may still be open.
	if refused != nil && client.Do(ctx, client.B().Discard().Build()).NonValkeyError() == nil {
		*t = transaction{}
	}
	return refused
}

// restore restores the values in the reply to a command, now or with EXEC.
func (t *transaction) restore(reply *compression.Reply, wanted restoration, result valkey.ValkeyResult) valkey.ValkeyResult {
	if result.Error() != nil {
		t.isOpen = t.isOpen && wanted.boundary == commands.None
		return result
	}
	switch {
	case wanted.boundary == commands.Begins:
		*t = transaction{isOpen: true}
	case wanted.boundary == commands.Ends:
		*t = transaction{}
	case wanted.boundary == commands.Runs && t.isOpen:
		queued := t.queued
		*t = transaction{}
		return restoreEach(reply, queued, result)
	case t.isOpen && isQueued(result):
		t.queued = append(t.queued, wanted)
	default:
		return wanted.restore(reply, result)
	}
	return result
}

func isQueued(result valkey.ValkeyResult) bool {
	text, err := result.ToString()
	return err == nil && text == "QUEUED"
}

// restoreEach restores the values in the reply to EXEC, whose elements are replies.
func restoreEach(within *compression.Reply, queued []restoration, result valkey.ValkeyResult) valkey.ValkeyResult {
	reply := messageOf(&result)
	if markingOf(reply) != marksArray || len(elementsOf(reply)) != len(queued) {
		return result
	}
	elements := append([]valkey.ValkeyMessage(nil), elementsOf(reply)...)
	messages := make([]*valkey.ValkeyMessage, len(elements))
	for at := range elements {
		messages[at] = &elements[at]
	}
	gather(within, messages, queued)
	for at := range elements {
		if err := queued[at].restoreMessage(within, &elements[at]); err != nil {
			return failed(err)
		}
	}
	setElements(reply, elements)
	return result
}
