package goredis

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"snugly.dev/go/catalogue"
)

// plain marks a command whose values are not ours to encode, nor those of its reply to restore.
type plain struct{ redis.Cmder }

// processor sends commands.
type processor interface {
	Process(ctx context.Context, command redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// server is the way to dictionaries by a client.
type server struct {
	client      processor
	readTimeout time.Duration // Of the client; 0 or less for none.
}

// ReplyTimeout is the client's ReadTimeout.
func (s server) ReplyTimeout() time.Duration { return max(s.readTimeout, 0) }

// Send sends one command as such, so that it is sent again as any other of the client's.
func (s server) Send(ctx context.Context, commands [][]string) ([]any, error) {
	batch := make([]*redis.Cmd, len(commands))
	for at, command := range commands {
		arguments := make([]any, len(command))
		for at, argument := range command {
			arguments[at] = argument
		}
		batch[at] = redis.NewCmd(ctx, arguments...)
	}
	if len(batch) == 1 {
		_ = s.client.Process(ctx, plain{batch[0]})
		return repliesTo(batch)
	}
	pipeline := s.client.Pipeline()
	for _, command := range batch {
		_ = pipeline.Process(ctx, plain{command})
	}
	_, _ = pipeline.Exec(ctx)
	return repliesTo(batch)
}

// repliesTo are those of commands that were sent, as the catalogue knows them. The error is for one that has none.
func repliesTo(batch []*redis.Cmd) ([]any, error) {
	replies := make([]any, len(batch))
	for at, command := range batch {
		var reply redis.Error
		switch err := command.Err(); {
		case errors.Is(err, redis.Nil):
		case errors.Is(err, redis.ErrClosed):
			return nil, catalogue.ErrClosed
		case errors.As(err, &reply):
			replies[at] = &catalogue.ReplyError{Message: err.Error()}
		case err != nil:
			return nil, err
		default:
			replies[at] = command.Val()
		}
	}
	return replies, nil
}

// newRingServer makes that of a Ring, whose nodes have the timeout: its own options may leave it out.
func newRingServer(client *redis.Ring) server {
	var mutex sync.Mutex
	made := server{client: client}
	_ = client.ForEachShard(context.Background(), func(_ context.Context, node *redis.Client) error {
		mutex.Lock()
		defer mutex.Unlock()
		made.readTimeout = node.Options().ReadTimeout
		return nil
	})
	return made
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
	// Its pipelines have no connections of their own.
	options.PipelinePoolSize, options.PipelineReadBufferSize, options.PipelineWriteBufferSize = -1, 0, 0
	options.ContextTimeoutEnabled = true
	options.ClientSideCacheConfig, options.ClientSideCache = nil, nil
	options.PushNotificationProcessor = nil
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &nodeServer{server{client, options.ReadTimeout}, options}
}

// Aside has a connection of its own.
func (s *nodeServer) Aside() (catalogue.Server, func()) {
	options := s.options
	own := redis.NewClient(&options)
	return server{own, s.readTimeout}, func() { _ = own.Close() }
}

// databaseServer is that of a client of one server whose dictionaries are in another database: a client of that one, which
// ends with the compressor.
type databaseServer struct {
	*nodeServer
	own *redis.Client
}

func newDatabaseServer(client *redis.Client, number int) databaseServer {
	node := newNodeServer(client)
	node.options.DB = number
	options := node.options
	own := redis.NewClient(&options)
	node.server.client = own
	return databaseServer{node, own}
}

// Close closes the client.
func (s databaseServer) Close() error { return s.own.Close() }

// clusterServer is that of a client of a cluster: the primaries that it knows.
type clusterServer struct{ client *redis.ClusterClient }

// ReplyTimeout is the client's ReadTimeout.
func (s clusterServer) ReplyTimeout() time.Duration { return max(s.client.Options().ReadTimeout, 0) }

// mostRedirections is the most times that nodes are asked, in a cluster that changes.
const mostRedirections = 3

// Send asks the primary of each key. What a node says to be elsewhere is sent again.
func (s clusterServer) Send(ctx context.Context, commands [][]string) ([]any, error) {
	replies := make([]any, len(commands))
	left := make([]int, len(commands))
	for at := range left {
		left[at] = at
	}
	for range mostRedirections {
		var err error
		if left, err = s.sendOnce(ctx, commands, left, replies); err != nil || len(left) == 0 {
			return replies, err
		}
		s.client.ReloadState(ctx)
	}
	return replies, nil
}

// sendOnce sends the commands at some places, and returns the places of those whose keys are elsewhere.
func (s clusterServer) sendOnce(ctx context.Context, commands [][]string, places []int, replies []any) (elsewhere []int, err error) {
	byNode := map[*redis.Client][]int{}
	for _, at := range places {
		node, err := s.client.MasterForKey(ctx, commands[at][1])
		if errors.Is(err, redis.ErrClosed) {
			return nil, catalogue.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		byNode[node] = append(byNode[node], at)
	}
	for node, places := range byNode {
		batch := make([][]string, len(places))
		for at, place := range places {
			batch[at] = commands[place]
		}
		answered, err := server{client: node}.Send(ctx, batch)
		if err != nil {
			return nil, err
		}
		for at, place := range places {
			replies[place] = answered[at]
			if isElsewhere(answered[at]) {
				elsewhere = append(elsewhere, place)
			}
		}
	}
	return elsewhere, nil
}

// Aside is the same way, which has one connection more to each node if the client may open it.
func (s clusterServer) Aside() (catalogue.Server, func()) { return s, func() {} }

// isElsewhere tells whether a node replied that another one has the key.
func isElsewhere(reply any) bool {
	failure, isFailure := reply.(*catalogue.ReplyError)
	return isFailure && (strings.HasPrefix(failure.Message, "MOVED ") || strings.HasPrefix(failure.Message, "ASK ") || strings.HasPrefix(failure.Message, "READONLY "))
}
