package valkeygo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/internal/vectors"
	"snugly.dev/go/valkeygo"
)

// another is a dictionary that no other number has.
func another(t testing.TB, number uint32) *envelope.Dictionary {
	t.Helper()
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	content := bytes.Clone(read.Dictionaries["profiles"].Bytes)
	binary.LittleEndian.PutUint32(content[len(content)-4:], number)
	binary.LittleEndian.PutUint32(content[4:], envelope.DictionaryID(content[8:]))
	made, err := envelope.LoadDictionary(content)
	ok(t, err)
	return made
}

// storeWith puts a value at a key that is written with a dictionary.
func storeWith(t testing.TB, plain valkey.Client, dictionary *envelope.Dictionary, key string) {
	t.Helper()
	codec, err := envelope.New(envelope.Options{Dictionaries: envelope.Only(dictionary)})
	ok(t, err)
	ok(t, plain.Do(ctx, plain.B().Set().Key(key).Value(string(codec.Encode(nil, []byte(profile)))).Build()).Error())
}

// nameInCatalogue has the catalogue name a dictionary, which is not there.
func nameInCatalogue(t testing.TB, plain valkey.Client, missing *envelope.Dictionary) {
	t.Helper()
	named := fmt.Sprintf(`{"version": 1, "dictionaries": [{"id": %d, "pattern": "*"}]}`, missing.ID())
	ok(t, plain.Do(ctx, plain.B().Set().Key("{snugly}:dicts").Value(named).Build()).Error())
}

func TestAReaderWithoutPermissionIsToldSoAndReadsAgainWithIt(t *testing.T) {
	settings := valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}}
	_, plain := open(t, compression.Options{}, settings)
	dictionary := another(t, 1)
	storeWith(t, plain, dictionary, "user:1")
	ok(t, plain.Do(ctx, plain.B().Set().Key(keyOf(dictionary)).Value(string(dictionary.Bytes())).Build()).Error())
	ok(t, plain.Do(ctx, plain.B().Arbitrary("ACL", "SETUSER", "limited", "on", ">secret", "~user:*", "+@all").Build()).Error())
	settings.Username, settings.Password = "limited", "secret"
	reader, _ := open(t, compression.Options{DictionaryRefresh: time.Second}, settings)
	read := func() (string, error) { return reader.Do(ctx, reader.B().Get().Key("user:1").Build()).ToString() }
	_, err := read()
	undecodable := (*envelope.UndecodableError)(nil)
	if !errors.As(err, &undecodable) || undecodable.Kind != envelope.DictionaryMissing ||
		!strings.Contains(err.Error(), "dictionaries are off, since the keys {snugly}:* may not be read: allow GET for them") {
		t.Errorf("got %v", err)
	}
	ok(t, plain.Do(ctx, plain.B().Arbitrary("ACL", "SETUSER", "limited", "~*").Build()).Error())
	servers.Eventually(t, "it is not read again", func() bool { _, err := read(); return err == nil })
	is(t, profile)(read())
}

func TestTheDictionariesThatOneReplyNeedsAreFetchedTogether(t *testing.T) {
	settings := valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}}
	// Each way of reading two keys.
	ways := map[string]func(ctx context.Context, client *valkeygo.Client, first, second string){
		"MGET": func(ctx context.Context, client *valkeygo.Client, first, second string) {
			client.Do(ctx, client.B().Mget().Key(first, second).Build())
		},
		"several commands": func(ctx context.Context, client *valkeygo.Client, first, second string) {
			client.DoMulti(ctx, client.B().Get().Key(first).Build(), client.B().Get().Key(second).Build())
		},
		"several that are cached": func(ctx context.Context, client *valkeygo.Client, first, second string) {
			client.DoMultiCache(ctx, valkey.CT(client.B().Get().Key(first).Cache(), time.Minute), valkey.CT(client.B().Get().Key(second).Cache(), time.Minute))
		},
		"a transaction": func(ctx context.Context, client *valkeygo.Client, first, second string) {
			client.DoMulti(ctx, client.B().Multi().Build(), client.B().Get().Key(first).Build(), client.B().Get().Key(second).Build(), client.B().Exec().Build())
		},
	}
	number := uint32(0)
	for name, read := range ways {
		t.Run(name, func(t *testing.T) {
			// Nobody sees the end of a fetch of what is not there.
			client, plain := open(t, compression.Options{DictionaryRefresh: time.Hour}, settings)
			never, published := another(t, number), another(t, number+1)
			number += 2
			storeWith(t, plain, never, "never")
			storeWith(t, plain, published, "published")
			nameInCatalogue(t, plain, never)
			ok(t, plain.Do(ctx, plain.B().Set().Key(keyOf(published)).Value(string(published.Bytes())).Build()).Error())
			waiting, leave := context.WithCancel(ctx)
			left := make(chan struct{})
			go func() { read(waiting, client, "never", "published"); close(left) }()
			servers.Eventually(t, "the second waits for the first", func() bool {
				return client.Compressor().Statistics().DictionariesFetched == 1
			})
			leave()
			<-left
			is(t, profile)(client.Do(ctx, client.B().Get().Key("published").Build()).ToString())
		})
	}
}
