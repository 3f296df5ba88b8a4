package goredis

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/internal/commands"
)

// transaction is one that an application writes out on a connection of its own: MULTI, commands and EXEC, each a call. There
// is one for each Conn and Tx, and one for each client, of which nobody expects transactions.
type transaction struct {
	mutex   sync.Mutex
	isOpen  bool
	refused error // The first refusal since MULTI.
}

// process sends a command. Of a transaction with a refused command nothing is run: in the place of EXEC goes DISCARD, and
// the refusal is the answer.
func (t *transaction) process(ctx context.Context, next redis.ProcessHook, command redis.Cmder) error {
	switch boundaryOf(command) {
	case commands.Begins:
		err := next(ctx, command)
		if err == nil {
			t.restart(true)
		}
		return err
	case commands.Runs:
		if refused := t.firstRefusal(); refused != nil {
			return t.discard(ctx, next, refused)
		}
		t.restart(false)
	case commands.Ends:
		t.restart(false)
	}
	return next(ctx, command)
}

// discard ends the transaction. If the server has not answered, it may still be open, and must not be run later either.
func (t *transaction) discard(ctx context.Context, next redis.ProcessHook, refused error) error {
	err := next(ctx, redis.NewStatusCmd(ctx, "discard"))
	var reply redis.Error
	if err == nil || errors.As(err, &reply) {
		t.restart(false)
	}
	return refused
}

// refuse notes that a command was refused, if it belongs to a transaction.
func (t *transaction) refuse(refused error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.isOpen && t.refused == nil {
		t.refused = refused
	}
}

func (t *transaction) firstRefusal() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.refused
}

// restart forgets what was refused, at the begin and the end of a transaction.
func (t *transaction) restart(isOpen bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.isOpen, t.refused = isOpen, nil
}

func boundaryOf(command redis.Cmder) commands.Boundary {
	arguments := arguments(command.Args())
	if len(arguments) == 0 {
		return commands.None
	}
	return commands.BoundaryOf(arguments.Text(0))
}
