package goredis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/catalogue"
	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/commands"
)

// Compress makes a client compress: a *redis.Client (also one made by NewFailoverClient), *redis.ClusterClient or
// *redis.Ring. It is called once for each client, before the client is used. It returns an *envelope.OptionError for an
// option that cannot be, also one of the client, and an error for another kind of client, or for none.
//
// A client whose AutoPipelineOptions have FullDuplex is refused, since go-redis then sends commands before hooks see them:
// values would go out uncompressed, and refused commands be executed. A client that compresses must not be given that
// option later either (AutoPipelineWithOptions, AsyncAutoPipelineWithOptions).
//
// Other hooks are to be added before, and see commands and replies as the application does. Those that are added later to a
// *redis.Client see what is sent and what is stored, and commands whose values are encoded with a type of this package in
// the place of go-redis's.
//
// The compressor that it returns counts, and looks after dictionaries if there are some, until it or the client is closed.
func Compress(client redis.UniversalClient, options compression.Options) (*compression.Compressor, error) {
	kind, err := kindOf(client)
	if err != nil {
		return nil, err
	}
	if isFullDuplex(kind.automatic) {
		return nil, &envelope.OptionError{
			Option: "AutoPipelineOptions.FullDuplex", Value: true,
			Allowed: "it is off for a client that compresses, as go-redis sends commands before hooks see them with it",
		}
	}
	server := kind.server
	if options.DictionaryDatabase != nil && kind.inDatabase == nil {
		return nil, &envelope.OptionError{
			Option: "DictionaryDatabase", Value: *options.DictionaryDatabase, Allowed: "leave it out for a cluster and for a Ring",
		}
	}
	if options.DictionaryDatabase != nil {
		server = kind.inDatabase(*options.DictionaryDatabase)
	}
	compressor, err := compression.New(server, options)
	if err != nil {
		return nil, err
	}
	kind.add(&hook{compressor, commands.New(compressor.ValueTypes())})
	return compressor, nil
}

// kind is a kind of clients.
type kind struct {
	// server is the way to dictionaries.
	server catalogue.Server
	// inDatabase is the way to those in another database; nil where there is no other.
	inDatabase func(number int) catalogue.Server
	// automatic has the options for pipelines of single commands, if the client was given some.
	automatic *redis.AutoPipelineOptions
	// add adds a hook to every connection pool of the client: values are encoded where commands are sent, so that
	// whatever sends them again starts with what the application gave.
	add func(hook redis.Hook)
}

func kindOf(client redis.UniversalClient) (kind, error) {
	if value := reflect.ValueOf(client); !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return kind{}, errors.New("goredis: there is no client to compress: give one that redis.NewClient has made")
	}
	switch client := client.(type) {
	case *redis.Client:
		return kind{newNodeServer(client), func(number int) catalogue.Server { return newDatabaseServer(client, number) }, client.Options().AutoPipelineOptions, client.AddHook}, nil
	case *redis.ClusterClient:
		return kind{clusterServer{client}, nil, client.Options().AutoPipelineOptions, func(hook redis.Hook) { addToNodes(client, hook) }}, nil
	case *redis.Ring:
		return kind{newRingServer(client), nil, nil, func(hook redis.Hook) { addToNodes(client, hook) }}, nil
	}
	return kind{}, fmt.Errorf("goredis: a %T cannot be compressed: give a *redis.Client, *redis.ClusterClient or *redis.Ring", client)
}

// isFullDuplex tells whether automatic pipelines write commands at once. go-redis before 9.23 never does, and has no field
// for it.
func isFullDuplex(options *redis.AutoPipelineOptions) bool {
	if options == nil {
		return false
	}
	field := reflect.ValueOf(options).Elem().FieldByName("FullDuplex")
	return field.IsValid() && field.Bool()
}

// nodes is a client that has one of its own for each node.
type nodes interface {
	OnNewNode(added func(node *redis.Client))
	ForEachShard(ctx context.Context, each func(ctx context.Context, node *redis.Client) error) error
}

// addToNodes adds a hook to all nodes: those that there are, and those that come.
func addToNodes(client nodes, hook redis.Hook) {
	var mutex sync.Mutex
	known := map[*redis.Client]bool{}
	add := func(node *redis.Client) {
		mutex.Lock()
		defer mutex.Unlock()
		if known != nil && known[node] {
			return
		}
		if known != nil {
			known[node] = true
		}
		node.AddHook(hook)
	}
	client.OnNewNode(add)
	// A client that has not been used knows no nodes of a cluster. It is not to look for them now, but when it is used.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = client.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		add(node)
		return nil
	})
	mutex.Lock()
	defer mutex.Unlock()
	known = nil
}
