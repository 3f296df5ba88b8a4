package goredis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/internal/commands"
)

// transaction is one that an application writes out on a connection of its own: MULTI, commands and EXEC, each a call. There
// is one for each Conn and Tx, and one for each client, of which nobody expects transactions.
type transaction struct {
	isOpen  atomic.Bool
	mutex   sync.Mutex    // Guards what follows, and changes of isOpen.
	refused error         // The first refusal since MULTI.
	queued  []restoration // What is to be done with the elements of EXEC's reply.
}

// process sends a command, and returns what is to be done with the elements of its reply, if it is EXEC. Of a transaction
// with a refused command nothing is run: in the place of EXEC goes DISCARD, and the refusal is the answer.
func (t *transaction) process(ctx context.Context, next redis.ProcessHook, command redis.Cmder, wanted restoration) (queued []restoration, err error) {
	switch boundaryOf(command) {
	case commands.Begins:
		err := next(ctx, command)
		if err == nil {
			t.restart(true)
		}
		return nil, err
	case commands.Runs:
		if refused := t.firstRefusal(); refused != nil {
			return nil, t.discard(ctx, next, refused)
		}
		return t.restart(false), next(ctx, command)
	case commands.Ends:
		t.restart(false)
	}
	err = next(ctx, command)
	if err == nil && t.isOpen.Load() && isQueued(command) {
		t.queue(wanted)
	}
	return nil, err
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
	if t.isOpen.Load() && t.refused == nil {
		t.refused = refused
	}
}

func (t *transaction) firstRefusal() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.refused
}

// queue notes what is to be done with the reply to a command that EXEC runs.
func (t *transaction) queue(wanted restoration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.isOpen.Load() {
		t.queued = append(t.queued, wanted)
	}
}

// restart forgets what was refused and queued, at the begin and the end of a transaction, and returns what was queued.
func (t *transaction) restart(isOpen bool) (queued []restoration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	queued = t.queued
	t.isOpen.Store(isOpen)
	t.refused, t.queued = nil, nil
	return queued
}

// isQueued tells whether the reply to a command says that EXEC will run it.
func isQueued(command redis.Cmder) bool {
	switch command := given(command).(type) {
	case *redis.Cmd:
		return command.Val() == "QUEUED"
	case *redis.StatusCmd:
		return command.Val() == "QUEUED"
	case *redis.StringCmd:
		return command.Val() == "QUEUED"
	}
	return false
}

// repliesOf are the elements of the reply to EXEC. There are none in the EXEC that go-redis sends for TxPipelined.
func repliesOf(command redis.Cmder) []any {
	switch command := given(command).(type) {
	case *redis.Cmd:
		replies, _ := command.Val().([]any)
		return replies
	case *redis.SliceCmd:
		return command.Val()
	}
	return nil
}

// queuedBefore is what is to be done with the elements of the reply to an EXEC, in a batch that has the transaction written
// out; nil for another command.
func queuedBefore(requests []request, at int) (queued []restoration) {
	command := requests[at].command
	if boundaryOf(command) != commands.Runs || len(repliesOf(command)) == 0 {
		return nil
	}
	first := at
	for first > 0 && boundaryOf(requests[first-1].command) != commands.Begins {
		first--
	}
	for _, each := range requests[first:at] {
		queued = append(queued, each.restoration)
	}
	return queued
}

func boundaryOf(command redis.Cmder) commands.Boundary {
	arguments := arguments(command.Args())
	if len(arguments) == 0 {
		return commands.None
	}
	return commands.BoundaryOf(arguments.Text(0))
}
