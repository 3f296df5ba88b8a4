package valkeygo

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/catalogue"
	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/commands"
)

// Client is a client that compresses. It takes the place of the one that it was made from, which sees compressed values.
type Client struct {
	valkey.Client
	compressor compressing
	isNode     bool // The compressor is that of the client whose node this is.
}

var _ valkey.Client = (*Client)(nil)

// compressing has what a client compresses with.
type compressing struct {
	*compression.Compressor
	table *commands.Table
	// isLost says that nothing was answered since a connection was lost.
	isLost *atomic.Bool
}

// saw notes whether the server has answered. When it does again, it may be another one.
func (c compressing) saw(result valkey.ValkeyResult) {
	switch failure := result.NonValkeyError(); {
	case failure == nil:
		if c.isLost.Load() && c.isLost.CompareAndSwap(true, false) {
			c.Dictionaries().Connected()
		}
	case !errors.Is(failure, context.Canceled) && !errors.Is(failure, context.DeadlineExceeded):
		c.isLost.Store(true)
	}
}

// sawAll is saw for what came together, maybe from several servers.
func (c compressing) sawAll(results []valkey.ValkeyResult) {
	for _, result := range results {
		if result.NonValkeyError() != nil {
			c.saw(result)
			return
		}
	}
	c.saw(results[0])
}

// Compress makes a client that compresses from one that does not, of one server, a Sentinel or a cluster. It returns an
// *envelope.OptionError for an option that cannot be, and an error if there is no client.
func Compress(client valkey.Client, options compression.Options) (*Client, error) {
	if errLayout != nil {
		return nil, errLayout
	}
	way, err := wayTo(client, options.DictionaryDatabase)
	if err != nil {
		return nil, err
	}
	compressor, err := compression.New(way, options)
	if err != nil {
		return nil, err
	}
	if client == nil {
		return nil, errors.New("valkeygo: there is no client to compress: give one that valkey.NewClient has made")
	}
	return &Client{Client: client, compressor: compressing{compressor, commands.New(compressor.ValueTypes()), new(atomic.Bool)}}, nil
}

// wayTo is the way to dictionaries, in the client's own database or another one.
func wayTo(client valkey.Client, database *int) (catalogue.Server, error) {
	switch {
	case database == nil || client == nil:
		return server{client, replyTimeout(client)}, nil
	case client.Mode() == valkey.ClientModeCluster:
		return nil, &envelope.OptionError{Option: "DictionaryDatabase", Value: *database, Allowed: "leave it out for a cluster"}
	}
	return server{&databaseConnection{client: client, number: *database}, replyTimeout(client)}, nil
}

// Compressor counts what passed, and has the client's dictionaries.
func (c *Client) Compressor() *compression.Compressor { return c.compressor.Compressor }

// Close closes the client that this was made from, too. The client of a node leaves the compressor to those that share it.
func (c *Client) Close() {
	if !c.isNode {
		c.compressor.Close()
	}
	c.Client.Close()
}

// Do is that of a valkey.Client.
func (c *Client) Do(ctx context.Context, command valkey.Completed) valkey.ValkeyResult {
	sent, restoration, err := request(c.compressor, c.Client, command)
	if err != nil {
		return failed(err)
	}
	result := c.Client.Do(ctx, sent)
	c.compressor.saw(result)
	reply := c.compressor.Reply(ctx)
	restoration.gather(&reply, result)
	return restoration.restore(&reply, result)
}

// DoMulti is that of a valkey.Client.
func (c *Client) DoMulti(ctx context.Context, multi ...valkey.Completed) []valkey.ValkeyResult {
	return doMulti(ctx, c.compressor, c.Client, multi, new(transaction))
}

// DoCache is that of a valkey.Client. What is cached is compressed.
func (c *Client) DoCache(ctx context.Context, command valkey.Cacheable, ttl time.Duration) valkey.ValkeyResult {
	restoration, err := c.cached(command)
	if err != nil {
		return failed(err)
	}
	result := c.Client.DoCache(ctx, command, ttl)
	c.compressor.saw(result)
	reply := c.compressor.Reply(ctx)
	restoration.gather(&reply, result)
	return restoration.restore(&reply, result)
}

// DoMultiCache is that of a valkey.Client.
func (c *Client) DoMultiCache(ctx context.Context, multi ...valkey.CacheableTTL) []valkey.ValkeyResult {
	results := make([]valkey.ValkeyResult, len(multi))
	sent := make([]valkey.CacheableTTL, 0, len(multi))
	places := make([]int, 0, len(multi))
	restorations := make([]restoration, 0, len(multi))
	for at, each := range multi {
		wanted, err := c.cached(each.Cmd)
		if err != nil {
			results[at] = failed(err)
			continue
		}
		sent, places, restorations = append(sent, each), append(places, at), append(restorations, wanted)
	}
	if len(sent) == 0 {
		return results
	}
	received := c.Client.DoMultiCache(ctx, sent...)
	c.compressor.sawAll(received)
	reply := c.compressor.Reply(ctx)
	gather(&reply, messagesOf(received), restorations)
	for at, result := range received {
		results[places[at]] = restorations[at].restore(&reply, result)
	}
	return results
}

func (c *Client) cached(command valkey.Cacheable) (restoration, error) {
	_, _, wanted, err := look(c.compressor, command.Commands())
	return wanted, err
}

// DoStream is that of a valkey.Client. A command whose reply has values is refused: they are not restored on their way.
func (c *Client) DoStream(ctx context.Context, command valkey.Completed) valkey.ValkeyResultStream {
	sent, err := c.streamed(command)
	if err != nil {
		return failedStream(err)
	}
	return c.Client.DoStream(ctx, sent)
}

// DoMultiStream is that of a valkey.Client. As with DoStream, commands whose replies have values are refused.
func (c *Client) DoMultiStream(ctx context.Context, multi ...valkey.Completed) valkey.MultiValkeyResultStream {
	sent := make([]valkey.Completed, len(multi))
	for at, command := range multi {
		var err error
		if sent[at], err = c.streamed(command); err != nil {
			return failedStream(err)
		}
	}
	return c.Client.DoMultiStream(ctx, sent...)
}

func (c *Client) streamed(command valkey.Completed) (valkey.Completed, error) {
	sent, restoration, err := request(c.compressor, c.Client, command)
	if err == nil && restoration.shape != nil {
		row := c.compressor.table.Row(command.Commands()[0])
		err = &compression.RefusedError{Command: row.Name, Message: row.Name + " as a stream is refused because compression is on: values are not restored in streams; use Do"}
	}
	return sent, err
}

// Dedicated is that of a valkey.Client.
func (c *Client) Dedicated(use func(valkey.DedicatedClient) error) error {
	return c.Client.Dedicated(func(inner valkey.DedicatedClient) error { return use(c.dedicated(inner)) })
}

// Dedicate is that of a valkey.Client.
func (c *Client) Dedicate() (valkey.DedicatedClient, func()) {
	inner, cancel := c.Client.Dedicate()
	return c.dedicated(inner), cancel
}

// Nodes is that of a valkey.Client. The clients share this one's compressor.
func (c *Client) Nodes() map[string]valkey.Client {
	nodes := c.Client.Nodes()
	for address, node := range nodes {
		nodes[address] = &Client{node, c.compressor, true}
	}
	return nodes
}

// core sends commands.
type core interface {
	B() valkey.Builder
	Do(ctx context.Context, command valkey.Completed) valkey.ValkeyResult
	DoMulti(ctx context.Context, multi ...valkey.Completed) []valkey.ValkeyResult
}

// doMulti sends several commands, which may begin or end a transaction.
func doMulti(ctx context.Context, compressor compressing, client core, multi []valkey.Completed, within *transaction) []valkey.ValkeyResult {
	results := make([]valkey.ValkeyResult, len(multi))
	sent := make([]valkey.Completed, 0, len(multi))
	places := make([]int, 0, len(multi))
	restorations := make([]restoration, 0, len(multi))
	isTransaction := within.isOpen
	var refused error
	for at, command := range multi {
		each, wanted, err := request(compressor, client, command)
		if err != nil {
			results[at], refused = failed(err), err
			continue
		}
		isTransaction = isTransaction || wanted.boundary == commands.Begins
		sent, places, restorations = append(sent, each), append(places, at), append(restorations, wanted)
	}
	// A part of a transaction is never run.
	switch first := firstBoundary(restorations); {
	case refused != nil && isTransaction:
		within.refuse(refused)
		if first != commands.None {
			within.discard(ctx, client)
		}
		return allFailed(len(multi), refused)
	case within.refused != nil && first == commands.Runs:
		return allFailed(len(multi), within.discard(ctx, client))
	case len(sent) == 0:
		return results
	}
	received := client.DoMulti(ctx, sent...)
	compressor.sawAll(received)
	reply := compressor.Reply(ctx)
	gather(&reply, messagesOf(received), restorations)
	for at, result := range received {
		results[places[at]] = within.restore(&reply, restorations[at], result)
	}
	return results
}

// firstBoundary is the first effect of commands on a transaction.
func firstBoundary(wanted []restoration) commands.Boundary {
	for _, each := range wanted {
		if each.boundary != commands.None {
			return each.boundary
		}
	}
	return commands.None
}

func allFailed(count int, err error) []valkey.ValkeyResult {
	results := make([]valkey.ValkeyResult, count)
	for at := range results {
		results[at] = failed(err)
	}
	return results
}
