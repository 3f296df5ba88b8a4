package valkeygo

import (
	"context"
	"sync"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
)

// dedicated is a client that has a connection for itself, and with that may begin a transaction in one call and end it in
// another.
type dedicated struct {
	valkey.DedicatedClient
	compressor *compression.Compressor
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
		return failed(err)
	}
	result := d.DedicatedClient.Do(ctx, sent)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.within.restore(ctx, d.compressor, restoration, result)
}

// DoMulti is that of a valkey.DedicatedClient.
func (d *dedicated) DoMulti(ctx context.Context, multi ...valkey.Completed) []valkey.ValkeyResult {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return doMulti(ctx, d.compressor, d.DedicatedClient, multi, &d.within)
}

// transaction is what was queued since MULTI: what is to be done with the elements of EXEC's reply.
type transaction struct {
	isOpen bool
	queued []restoration
}

// restore restores the values in the reply to a command, now or with EXEC.
func (t *transaction) restore(ctx context.Context, compressor *compression.Compressor, wanted restoration, result valkey.ValkeyResult) valkey.ValkeyResult {
	if result.Error() != nil {
		t.isOpen = t.isOpen && wanted.boundary == none
		return result
	}
	switch {
	case wanted.boundary == begins:
		*t = transaction{isOpen: true}
	case wanted.boundary == ends:
		*t = transaction{}
	case wanted.boundary == runs && t.isOpen:
		queued := t.queued
		*t = transaction{}
		return restoreEach(ctx, compressor, queued, result)
	case t.isOpen && isQueued(result):
		t.queued = append(t.queued, wanted)
	default:
		return wanted.restore(ctx, compressor, result)
	}
	return result
}

func isQueued(result valkey.ValkeyResult) bool {
	text, err := result.ToString()
	return err == nil && text == "QUEUED"
}

// restoreEach restores the values in the reply to EXEC, whose elements are replies.
func restoreEach(ctx context.Context, compressor *compression.Compressor, queued []restoration, result valkey.ValkeyResult) valkey.ValkeyResult {
	reply := messageOf(&result)
	if markingOf(reply) != marksArray || len(elementsOf(reply)) != len(queued) {
		return result
	}
	elements := append([]valkey.ValkeyMessage(nil), elementsOf(reply)...)
	for at := range elements {
		if err := queued[at].restoreMessage(ctx, compressor, &elements[at]); err != nil {
			return failed(err)
		}
	}
	setElements(reply, elements)
	return result
}
