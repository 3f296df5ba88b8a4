package valkeygo

import (
	"context"
	"errors"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/catalogue"
)

// server is the way to dictionaries: the client that does not compress, which shares its connection.
type server struct{ client valkey.Client }

// Get is not marked as reading, so that no replica is asked.
func (s server) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.client.Do(ctx, s.client.B().Arbitrary("GET").Keys(key).Build()).AsBytes()
	if valkey.IsValkeyNil(err) {
		return nil, nil
	}
	return value, translated(err)
}

func (s server) Touch(ctx context.Context, key string) (bool, error) {
	count, err := s.client.Do(ctx, s.client.B().Arbitrary("TOUCH").Keys(key).Build()).AsInt64()
	return count > 0, translated(err)
}

func (s server) SetNX(ctx context.Context, key string, value []byte) (bool, error) {
	err := s.client.Do(ctx, s.client.B().Set().Key(key).Value(valkey.BinaryString(value)).Nx().Build()).Error()
	if valkey.IsValkeyNil(err) {
		return false, nil
	}
	return err == nil, translated(err)
}

// Aside is the same way: it waits for no connection.
func (s server) Aside() (catalogue.Server, func()) { return s, func() {} }

// translated is an error as the catalogue knows it.
func translated(err error) error {
	if errors.Is(err, valkey.ErrClosing) {
		return catalogue.ErrClosed
	}
	if reply, isReply := valkey.IsValkeyErr(err); isReply {
		return &catalogue.ReplyError{Message: reply.Error()}
	}
	return err
}
