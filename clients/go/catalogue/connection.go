package catalogue

import (
	"context"
	"sync"
)

// sender sends commands: a Server, or a connection that several share.
type sender interface {
	Send(ctx context.Context, commands [][]string) (replies []any, err error)
}

// sharedConnection is one connection aside for all who fetch dictionaries at the same time. They take turns, and the last
// one closes it.
type sharedConnection struct {
	ctx    context.Context // Ends with the manager.
	server Server
	turn   chan struct{} // Has something while a command waits.

	mutex   sync.Mutex // Guards what follows.
	users   int
	current Server // Nil until somebody sends something.
	end     func()
}

func newSharedConnection(ctx context.Context, server Server) *sharedConnection {
	return &sharedConnection{ctx: ctx, server: server, turn: make(chan struct{}, 1)}
}

// join keeps it open until leave.
func (c *sharedConnection) join() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.users++
}

// leave closes it, unless somebody else uses it.
func (c *sharedConnection) leave() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.users--; c.users == 0 && c.current != nil {
		c.end()
		c.current = nil
	}
}

// opened gives it, open. Those who look for nothing, since it is not the time for unknown dictionaries, need none.
func (c *sharedConnection) opened() Server {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.current == nil {
		c.current, c.end = aside(c.ctx, c.server)
	}
	return c.current
}

// Send is that of a Server, for those who have joined.
func (c *sharedConnection) Send(ctx context.Context, commands [][]string) ([]any, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.opened().Send(ctx, commands)
}

// aside returns a connection aside that ends with a context, too: not every library ends a command with it.
func aside(ctx context.Context, server Server) (made Server, end func()) {
	made, closed := server.Aside()
	stop := context.AfterFunc(ctx, closed)
	return made, func() {
		stop()
		closed()
	}
}
