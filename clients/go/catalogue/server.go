package catalogue

import (
	"context"
	"errors"
	"strings"
)

// Server is the way to the server whose values are read and written: in a cluster to the primary that has a key. It is
// for any number of goroutines. Values are sent and returned as they are, never in an envelope. An error that the server
// replied is a *ReplyError.
type Server interface {
	// Get returns the value of a key; nil if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Touch tells whether a key is there, and has the server see that it is in use.
	Touch(ctx context.Context, key string) (bool, error)
	// SetNX writes a value without expiry if the key is not there, and tells whether it did.
	SetNX(ctx context.Context, key string, value []byte) (bool, error)
	// Aside returns another way there that waits for nothing which those who use the client may hold, such as the only
	// connection of its pool, and what closes it, which may be called twice, and while a command waits.
	Aside() (way Server, end func())
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

// isDenied tells whether the user may not do what was asked for.
func isDenied(err error) bool {
	var reply *ReplyError
	return errors.As(err, &reply) && strings.HasPrefix(reply.Message, "NOPERM")
}

func isReply(err error) bool {
	var reply *ReplyError
	return errors.As(err, &reply)
}
