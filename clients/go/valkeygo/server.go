package valkeygo

import (
	"context"
	"errors"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/catalogue"
)

// sender sends commands.
type sender interface {
	B() valkey.Builder
	DoMulti(ctx context.Context, commands ...valkey.Completed) []valkey.ValkeyResult
}

// server is the way to dictionaries: the client that does not compress, which shares its connection, or a connection to
// their database.
type server struct {
	client       sender
	replyTimeout time.Duration // Of the client; 0 for none that is known.
}

// ReplyTimeout is that of the client.
func (s server) ReplyTimeout() time.Duration { return s.replyTimeout }

// Close closes what is the server's own.
func (s server) Close() error {
	if own, isOwn := s.client.(*databaseConnection); isOwn {
		return own.Close()
	}
	return nil
}

// Send marks no command as reading, so that no replica is asked.
func (s server) Send(ctx context.Context, commands [][]string) ([]any, error) {
	batch := make([]valkey.Completed, len(commands))
	for at, command := range commands {
		batch[at] = s.client.B().Arbitrary(command[0]).Keys(command[1]).Args(command[2:]...).Build()
	}
	replies := make([]any, len(commands))
	for at, result := range s.client.DoMulti(ctx, batch...) {
		reply, err := result.ToAny()
		failure, isReply := valkey.IsValkeyErr(err)
		switch {
		case err == nil:
			replies[at] = reply
		case valkey.IsValkeyNil(err):
		case errors.Is(err, valkey.ErrClosing):
			return nil, catalogue.ErrClosed
		case isReply:
			replies[at] = &catalogue.ReplyError{Message: failure.Error()}
		default:
			return nil, err
		}
	}
	return replies, nil
}

// Aside is the same way: it waits for no connection.
func (s server) Aside() (catalogue.Server, func()) { return s, func() {} }
