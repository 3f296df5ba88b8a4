// Package tests holds the packages of this module against clients of other languages, and against snugly's own server.
package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/internal/vectors"
)

var ctx = context.Background()

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// values are of many kinds and sizes, by their keys.
func values() map[string][]byte {
	made := map[string][]byte{"text": []byte(strings.Repeat("Zürich, 🦊 and more of it; ", 40))}
	for _, size := range []int{0, 1, 31, 32, 63, 64, 65, 1000, 4096, 65_535, 65_536, 300_000, 3 << 20} {
		record := []byte(`{"name": "value", "tags": ["cache", "cached"], "id": 7}`)
		made[fmt.Sprint("json:", size)] = bytes.Repeat(record, size/len(record)+1)[:size]
		if size < 1<<20 {
			made[fmt.Sprint("noise:", size)] = vectors.Noise(uint64(size), size)
			made[fmt.Sprint("zeros:", size)] = make([]byte, size)
		}
	}
	return made
}

// peer lets a client of Python write values, or read those of some keys.
func peer(t *testing.T, action, library string, backend envelope.Backend, address string, given map[string][]byte, dictionary ...string) map[string][]byte {
	t.Helper()
	python := os.Getenv("SNUGLY_PYTHON")
	if python == "" {
		t.Skip("there is no Python with the package snugly: set SNUGLY_PYTHON")
	}
	_, port, err := net.SplitHostPort(address)
	ok(t, err)
	arguments := append([]string{"peer.py", action, library, string(backend), port}, dictionary...)
	process := exec.Command(python, arguments...)
	input, err := json.Marshal(given)
	ok(t, err)
	var output, complaints bytes.Buffer
	process.Stdin, process.Stdout, process.Stderr = bytes.NewReader(input), &output, &complaints
	if err := process.Run(); err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	var read map[string][]byte
	ok(t, json.Unmarshal(output.Bytes(), &read))
	return read
}

func open(t *testing.T, address string, options compression.Options) (client, plain *redis.Client) {
	t.Helper()
	client, plain = redis.NewClient(&redis.Options{Addr: address}), redis.NewClient(&redis.Options{Addr: address})
	compressor, err := goredis.Compress(client, options)
	ok(t, err)
	t.Cleanup(func() { client.Close(); plain.Close(); compressor.Close() })
	return client, plain
}

func expectValues(t *testing.T, read func(key string) []byte, wanted map[string][]byte) {
	t.Helper()
	for key, value := range wanted {
		if got := read(key); !bytes.Equal(got, value) {
			t.Errorf("%s: got %d bytes that are not the %d written", key, len(got), len(value))
		}
	}
}

func TestOtherLanguagesReadWhatGoWrites(t *testing.T) {
	servers.Slow(t, "it starts Python for each way to write")
	address := servers.Valkey(t)
	for _, backend := range []envelope.Backend{envelope.Zstd, envelope.LZ4} {
		for _, level := range map[envelope.Backend][]int{envelope.Zstd: {0, -5, 7, 19}, envelope.LZ4: {0, -9, 1, 9, 12}}[backend] {
			t.Run(fmt.Sprint(backend, " ", level), func(t *testing.T) {
				writer, plain := open(t, address, compression.Options{Backend: backend, CompressionLevel: level})
				ok(t, plain.FlushAll(ctx).Err())
				for key, value := range values() {
					ok(t, writer.Set(ctx, key, value, 0).Err())
				}
				stored, err := plain.Get(ctx, "json:300000").Bytes()
				ok(t, err)
				if len(stored) > 100_000 {
					t.Errorf("%d bytes are not compressed", len(stored))
				}
				for _, library := range []string{"snugly", "glide"} {
					read := peer(t, "read", library, backend, address, values())
					expectValues(t, func(key string) []byte { return read[key] }, values())
				}
			})
		}
	}
}

func TestGoReadsWhatOtherLanguagesWrite(t *testing.T) {
	servers.Slow(t, "it starts Python for each way to write")
	address := servers.Valkey(t)
	reader, plain := open(t, address, compression.Options{Backend: envelope.None})
	for _, library := range []string{"snugly", "glide"} {
		for _, backend := range []envelope.Backend{envelope.Zstd, envelope.LZ4} {
			t.Run(fmt.Sprint(library, " ", backend), func(t *testing.T) {
				ok(t, plain.FlushAll(ctx).Err())
				peer(t, "write", library, backend, address, values())
				expectValues(t, func(key string) []byte {
					value, err := reader.Get(ctx, key).Bytes()
					ok(t, err)
					return value
				}, values())
			})
		}
	}
}

func TestDictionariesAreSharedWithOtherLanguages(t *testing.T) {
	servers.Slow(t, "it starts Python for each way to write")
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	dictionary, err := envelope.LoadDictionary(read.Dictionaries["profiles"].Bytes)
	ok(t, err)
	path := filepath.Join(t.TempDir(), "dictionary")
	ok(t, os.WriteFile(path, dictionary.Bytes(), 0o600))
	profiles := map[string][]byte{}
	for number := range 50 {
		profiles[fmt.Sprint("user:", number)] = []byte(fmt.Sprintf(`{"name": "name-%d", "email": "email-%d", "city": "city-%d", "country": "country-%d"}%s`, number, number, number, number, strings.Repeat(" ", number)))
	}
	// Long ones, of one block and of several, within a window and beyond it.
	for _, times := range []int{20, 2000, 20_000, 50_000} {
		var list strings.Builder
		for number := range times {
			fmt.Fprintf(&list, `{"name": "name-%d", "email": "email-%d", "country": "country-%d"}`, number, number*7, number%50)
		}
		profiles[fmt.Sprint("list:", times)] = []byte(list.String())
	}
	usesDictionary := func(plain *redis.Client) bool {
		stored, err := plain.Get(ctx, "user:7").Bytes()
		header, _ := envelope.Inspect(stored)
		return err == nil && header.Dictionary == dictionary.ID()
	}

	t.Run("Go reads", func(t *testing.T) {
		address := servers.Valkey(t)
		reader, plain := open(t, address, compression.Options{})
		peer(t, "write", "snugly", envelope.Zstd, address, profiles, path)
		if !usesDictionary(plain) {
			t.Error("Python does not write with the dictionary")
		}
		expectValues(t, func(key string) []byte {
			value, err := reader.Get(ctx, key).Bytes()
			ok(t, err)
			return value
		}, profiles)
	})
	for backend, levels := range map[envelope.Backend][]int{envelope.Zstd: {0, 1, 6, 19}, envelope.LZ4: {0, -9, 1, 9, 12}} {
		for _, level := range levels {
			t.Run(fmt.Sprint("Go writes ", backend, ", level ", level), func(t *testing.T) {
				address := servers.Valkey(t)
				writer, plain := open(t, address, compression.Options{Backend: backend, CompressionLevel: level, Dictionary: dictionary, DictionaryRefresh: 200 * time.Millisecond})
				servers.Eventually(t, "Go does not write with the dictionary", func() bool {
					for key, value := range profiles {
						ok(t, writer.Set(ctx, key, value, 0).Err())
					}
					return usesDictionary(plain)
				})
				got := peer(t, "read", "snugly", envelope.Zstd, address, profiles)
				expectValues(t, func(key string) []byte { return got[key] }, profiles)
			})
		}
	}
}

func TestTheServerKeepsEnvelopesAsTheyAre(t *testing.T) {
	client, plain := open(t, servers.Snugly(t), compression.Options{})
	for key, value := range values() {
		ok(t, client.Set(ctx, key, value, time.Minute).Err())
	}
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Incr(ctx, "counter")
		return nil
	})
	ok(t, err)
	expectValues(t, func(key string) []byte {
		value, err := client.Get(ctx, key).Bytes()
		ok(t, err)
		return value
	}, values())
	stored, err := plain.Get(ctx, "json:4096").Result()
	ok(t, err)
	if !compression.IsEnvelope(stored) {
		t.Errorf("%d bytes that are no envelope", len(stored))
	}
}
