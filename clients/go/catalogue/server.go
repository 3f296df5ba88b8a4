package catalogue

import (
	"context"
	"errors"
	"strings"
	"time"

	"snugly.dev/go/internal/dictionaries"
)

// Server sends commands to the server whose values are read and written: in a cluster to the primaries that have their
// keys. It is for any number of goroutines.
type Server interface {
	// Send sends commands, of each the name, its key and its other arguments, in one round trip to each server. Values are
	// sent and returned as they are, never in an envelope. A reply is nil for null, a string, an int64, a *ReplyError, or
	// anything else; there is one for each command. The error is for commands that may not have reached the server.
	Send(ctx context.Context, commands [][]string) (replies []any, err error)
	// Aside returns another connection that waits for nothing which those who use the client may hold, such as the only
	// connection of its pool, and what closes it, which may be called twice, and while a command waits.
	Aside() (server Server, end func())
}

// Timed is a Server whose client waits for a reply only so long.
type Timed interface {
	// ReplyTimeout is the longest time that the client lets a server take for a reply; 0 for any.
	ReplyTimeout() time.Duration
}

// ReplyTimeout is that of a server; 0 where there is none.
func ReplyTimeout(server Server) time.Duration {
	if timed, isTimed := server.(Timed); isTimed {
		return timed.ReplyTimeout()
	}
	return 0
}

// ReplyError is an error that the server replied.
type ReplyError struct {
	// Message is the server's.
	Message string
}

// Error is the server's message.
func (e *ReplyError) Error() string { return e.Message }

// ErrClosed is returned by a Server whose client was closed.
var ErrClosed = errors.New("the client is closed")

// classified is a reply as the rules know it.
func classified(reply any) any {
	switch failure, isFailure := reply.(*ReplyError); {
	case !isFailure:
		return reply
	case strings.HasPrefix(failure.Message, "NOPERM"):
		return &dictionaries.Failure{Kind: dictionaries.Denied, Reason: failure.Message}
	default:
		return &dictionaries.Failure{Kind: dictionaries.Refused, Reason: failure.Message}
	}
}
