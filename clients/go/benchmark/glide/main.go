//go:build unix

// Command glide measures Valkey GLIDE's client for Go beside go-redis with snugly's hook, each with compression and
// without.
//
//	cd benchmark/glide && go run . [-address localhost:6379] [-seconds 1] [-rounds 7]
//
// It is a module of its own, as GLIDE needs cgo and downloads libraries for all platforms. All is as in the command
// benchmark. As its users do, GLIDE has one client and one connection for all goroutines, go-redis one for each.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"strconv"
	"time"

	valkey "github.com/valkey-io/valkey-glide/go/v2"
	"github.com/valkey-io/valkey-glide/go/v2/config"

	"snugly.dev/go/benchmark/internal/comparison"
)

const library = "GLIDE"

// requestTimeout is longer than GLIDE's default, which a busy machine can miss.
const requestTimeout = 10 * time.Second

// ofGLIDE is the ratio to GLIDE with the same compression.
var ofGLIDE = comparison.Ratio{Title: "of GLIDE's", Of: func(name comparison.Name) comparison.Name {
	return comparison.Name{Library: library, Compression: name.Compression}
}}

func main() {
	flags := comparison.NewFlags()
	flag.Parse()
	if err := flags.Run(func(settings comparison.Settings) error {
		return comparison.Run(settings, []comparison.Ratio{comparison.OfBare, ofGLIDE}, comparison.GoRedis, open)
	}); err != nil {
		log.Fatal(err)
	}
}

func open(settings comparison.Settings) ([]comparison.Way, error) {
	var ways []comparison.Way
	for _, row := range []struct {
		name        string
		compression *config.CompressionConfiguration
	}{
		{comparison.Bare, nil},
		{"lz4", config.NewCompressionConfiguration().WithBackend(config.LZ4)},
		{"zstd", config.NewCompressionConfiguration().WithBackend(config.ZSTD)},
	} {
		opened, err := connect(settings.Address, row.compression)
		if err != nil {
			return nil, err
		}
		name := comparison.Name{Library: library, Compression: row.name}
		ways = append(ways, comparison.Way{Name: name, Client: client{opened}})
	}
	return ways, nil
}

func connect(address string, compression *config.CompressionConfiguration) (*valkey.Client, error) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		return nil, fmt.Errorf("the port of %s: %w", address, err)
	}
	options := config.NewClientConfiguration().
		WithAddress(&config.NodeAddress{Host: host, Port: port}).
		WithRequestTimeout(requestTimeout)
	if compression != nil {
		options = options.WithCompressionConfiguration(compression)
	}
	return valkey.NewClient(options)
}

// client is a comparison.Client of GLIDE.
type client struct{ *valkey.Client }

func (c client) Set(ctx context.Context, key, value string) error {
	_, err := c.Client.Set(ctx, key, value)
	return err
}

func (c client) Get(ctx context.Context, key string) (string, error) {
	result, err := c.Client.Get(ctx, key)
	return result.Value(), err
}
