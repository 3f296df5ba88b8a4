package goredis

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"snugly.dev/go/catalogue"
)

// plain marks a command whose values are not ours to encode, nor those of its reply to restore.
type plain struct{ redis.Cmder }

// processor sends commands.
type processor interface {
	Process(ctx context.Context, command redis.Cmder) error
}

// server is the way to dictionaries by a client.
type server struct{ client processor }

func (s server) Get(ctx context.Context, key string) ([]byte, error) {
	command := redis.NewStringCmd(ctx, "get", key)
	err := s.client.Process(ctx, plain{command})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, translated(err)
	}
	return command.Bytes()
}

func (s server) Touch(ctx context.Context, key string) (bool, error) {
	command := redis.NewIntCmd(ctx, "touch", key)
	if err := s.client.Process(ctx, command); err != nil {
		return false, translated(err)
	}
	return command.Val() > 0, nil
}

func (s server) SetNX(ctx context.Context, key string, value []byte) (bool, error) {
	command := redis.NewStatusCmd(ctx, "set", key, value, "nx")
	err := s.client.Process(ctx, plain{command})
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, translated(err)
	}
	return true, nil
}

// translated is an error as the catalogue knows it.
func translated(err error) error {
	var reply redis.Error
	switch {
	case errors.Is(err, redis.ErrClosed):
		return catalogue.ErrClosed
	case errors.As(err, &reply):
		return &catalogue.ReplyError{Message: err.Error()}
	}
	return err
}

// Aside is the same way: there is no telling which node a client would have to be made for.
func (s server) Aside() (catalogue.Server, func()) { return s, func() {} }

// nodeServer is that of a client of one server.
type nodeServer struct {
	server
	// options are those of the client, as they were before it was used: it changes them.
	options redis.Options
}

func newNodeServer(client *redis.Client) *nodeServer {
	options := *client.Options()
	options.PoolSize, options.MinIdleConns, options.MaxIdleConns, options.MaxActiveConns = 1, 0, 0, 0
	options.ContextTimeoutEnabled = true
	options.ClientSideCacheConfig, options.ClientSideCache = nil, nil
	options.PushNotificationProcessor = nil
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &nodeServer{server{client}, options}
}

// Aside has a connection of its own.
func (s *nodeServer) Aside() (catalogue.Server, func()) {
	options := s.options
	own := redis.NewClient(&options)
	return server{own}, func() { _ = own.Close() }
}

// clusterServer is that of a client of a cluster: the primaries that it knows.
type clusterServer struct{ client *redis.ClusterClient }

// mostRedirections is how often another node is asked, for a cluster that changes.
const mostRedirections = 3

func (s clusterServer) Get(ctx context.Context, key string) (value []byte, err error) {
	return onPrimary(ctx, s.client, key, func(node server) ([]byte, error) { return node.Get(ctx, key) })
}

func (s clusterServer) Touch(ctx context.Context, key string) (bool, error) {
	return onPrimary(ctx, s.client, key, func(node server) (bool, error) { return node.Touch(ctx, key) })
}

func (s clusterServer) SetNX(ctx context.Context, key string, value []byte) (bool, error) {
	return onPrimary(ctx, s.client, key, func(node server) (bool, error) { return node.SetNX(ctx, key, value) })
}

// Aside is the same way, which has one connection more to each node if the client may open it.
func (s clusterServer) Aside() (catalogue.Server, func()) { return s, func() {} }

func onPrimary[T any](ctx context.Context, client *redis.ClusterClient, key string, ask func(node server) (T, error)) (found T, err error) {
	for range mostRedirections {
		node, nodeErr := client.MasterForKey(ctx, key)
		if nodeErr != nil {
			return found, translated(nodeErr)
		}
		found, err = ask(server{node})
		var reply *catalogue.ReplyError
		if !errors.As(err, &reply) || !isElsewhere(reply.Message) {
			return found, err
		}
		client.ReloadState(ctx)
	}
	return found, err
}

// isElsewhere tells whether a node says that another one has the key.
func isElsewhere(message string) bool {
	return strings.HasPrefix(message, "MOVED ") || strings.HasPrefix(message, "ASK ") || strings.HasPrefix(message, "READONLY ")
}
