package valkeygo

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/valkey-io/valkey-go"
)

// databaseConnection sends commands to another database than the client's, over a connection of its own that never comes
// back to the client's pool. One that is lost is made anew for the next command.
type databaseConnection struct {
	client valkey.Client
	number int

	mutex sync.Mutex // Guards what follows.
	own   valkey.DedicatedClient
}

func (d *databaseConnection) B() valkey.Builder { return d.client.B() }

func (d *databaseConnection) DoMulti(ctx context.Context, commands ...valkey.Completed) []valkey.ValkeyResult {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.own == nil {
		d.own, _ = d.client.Dedicate()
		selected := d.own.Do(ctx, d.own.B().Arbitrary("SELECT").Args(strconv.Itoa(d.number)).Build())
		if selected.Error() != nil {
			d.drop()
			return slices.Repeat([]valkey.ValkeyResult{selected}, len(commands))
		}
	}
	results := d.own.DoMulti(ctx, commands...)
	if slices.ContainsFunc(results, func(result valkey.ValkeyResult) bool { return result.NonValkeyError() != nil }) {
		d.drop()
	}
	return results
}

// drop closes the connection. The caller has the mutex.
func (d *databaseConnection) drop() {
	if d.own != nil {
		d.own.Close()
		d.own = nil
	}
}

// Close closes the connection.
func (d *databaseConnection) Close() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.drop()
	return nil
}
