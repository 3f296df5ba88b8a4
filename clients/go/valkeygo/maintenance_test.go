package valkeygo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

const profile = `{"name": "name-1", "email": "email-2", "city": "city-3", "country": "country-4"}`

func keyOf(dictionary *envelope.Dictionary) string {
	return fmt.Sprintf("{snugly}:dict:%d", dictionary.ID())
}

func isThere(t *testing.T, plain valkey.Client, key string) bool {
	t.Helper()
	count, err := plain.Do(ctx, plain.B().Exists().Key(key).Build()).AsInt64()
	ok(t, err)
	return count == 1
}

// eventuallyWrites waits until values are written with a dictionary.
func eventuallyWrites(t *testing.T, client *valkeygo.Client, plain valkey.Client, dictionary *envelope.Dictionary) {
	t.Helper()
	servers.Eventually(t, "it is not written with", func() bool {
		ok(t, client.Do(ctx, client.B().Set().Key("key").Value(profile).Build()).Error())
		stored, err := plain.Do(ctx, plain.B().Get().Key("key").Build()).AsBytes()
		ok(t, err)
		header, _ := envelope.Inspect(stored)
		return header.Dictionary == dictionary.ID()
	})
}

func TestAWriterPutsItsDictionaryBackBeforeItEnds(t *testing.T) {
	dictionary := another(t, 1)
	client, plain := open(t, compression.Options{Dictionary: dictionary, DictionaryRefresh: 24 * time.Hour}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	eventuallyWrites(t, client, plain, dictionary)
	ok(t, plain.Do(ctx, plain.B().Flushall().Build()).Error())
	client.Compressor().Close()
	if !isThere(t, plain, keyOf(dictionary)) {
		t.Error("it was not put back")
	}
}

func TestAWriterLooksForItsDictionaryWhenItHasConnectedAnew(t *testing.T) {
	dictionary := another(t, 1)
	client, plain := open(t, compression.Options{Dictionary: dictionary, DictionaryRefresh: 24 * time.Hour}, valkey.ClientOption{InitAddress: []string{servers.Valkey(t)}})
	eventuallyWrites(t, client, plain, dictionary)
	ok(t, plain.Do(ctx, plain.B().Flushall().Build()).Error())
	// The first write does not come back from the lost connection.
	ok(t, plain.Do(ctx, plain.B().Arbitrary("CLIENT", "PAUSE", "60000", "WRITE").Build()).Error())
	lost := make(chan error)
	go func() {
		lost <- client.Do(context.Background(), client.B().Set().Key("key").Value(profile).Build()).Error()
	}()
	servers.Eventually(t, "nothing is held up", func() bool {
		info, err := plain.Do(ctx, plain.B().Info().Section("clients").Build()).ToString()
		ok(t, err)
		return strings.Contains(info, "blocked_clients:1") || strings.Contains(info, "paused_reason:client_pause")
	})
	ok(t, plain.Do(ctx, plain.B().Arbitrary("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Build()).Error())
	if <-lost == nil {
		t.Fatal("the connection was not lost")
	}
	ok(t, plain.Do(ctx, plain.B().Arbitrary("CLIENT", "UNPAUSE").Build()).Error())
	servers.Eventually(t, "it was not put back", func() bool {
		_ = client.Do(ctx, client.B().Set().Key("key").Value(profile).Build()).Error()
		return isThere(t, plain, keyOf(dictionary))
	})
}

func TestAWriterLooksForItsDictionaryWhateverItWasThatLostAConnection(t *testing.T) {
	// Each way of reading a key.
	ways := map[string]func(client *valkeygo.Client, key string) error{
		"a dedicated client": func(client *valkeygo.Client, key string) (err error) {
			_ = client.Dedicated(func(own valkey.DedicatedClient) error {
				err = own.Do(ctx, own.B().Get().Key(key).Build()).NonValkeyError()
				return nil
			})
			return err
		},
		"several that are cached": func(client *valkeygo.Client, key string) error {
			get := func(key string) valkey.CacheableTTL { return valkey.CT(client.B().Get().Key(key).Cache(), time.Minute) }
			results := client.DoMultiCache(ctx, get(key), get(key+":other"))
			return errors.Join(results[0].NonValkeyError(), results[1].NonValkeyError())
		},
	}
	address, number := servers.Valkey(t), uint32(0)
	for name, read := range ways {
		t.Run(name, func(t *testing.T) {
			number++
			dial, dictionary := losing{key: "lost"}, another(t, number)
			client, plain := open(t, compression.Options{Dictionary: dictionary, DictionaryRefresh: 24 * time.Hour}, valkey.ClientOption{
				InitAddress: []string{address}, DialCtxFn: dial.dial, DisableRetry: true,
			})
			eventuallyWrites(t, client, plain, dictionary)
			ok(t, plain.Do(ctx, plain.B().Flushall().Build()).Error())
			if read(client, dial.key) == nil {
				t.Fatal("the connection was not lost")
			}
			servers.Eventually(t, "it was not put back", func() bool {
				_ = read(client, "another")
				return isThere(t, plain, keyOf(dictionary))
			})
		})
	}
}

func TestDictionariesMayLiveInAnotherDatabase(t *testing.T) {
	address, dictionary := servers.Valkey(t), another(t, 1)
	third, first := valkey.ClientOption{InitAddress: []string{address}, SelectDB: 3}, valkey.ClientOption{InitAddress: []string{address}}
	client, plain := open(t, compression.Options{Dictionary: dictionary, DictionaryDatabase: compression.Database(0)}, third)
	eventuallyWrites(t, client, plain, dictionary)
	_, inFirst := open(t, compression.Options{}, first)
	if isThere(t, plain, keyOf(dictionary)) || !isThere(t, inFirst, keyOf(dictionary)) {
		t.Error("it is in the wrong database")
	}
	reader, _ := open(t, compression.Options{DictionaryDatabase: compression.Database(0)}, third)
	is(t, profile)(reader.Do(ctx, reader.B().Get().Key("key").Build()).ToString())
	t.Run("and the client stays in its own", func(t *testing.T) {
		for range 20 {
			if !isThere(t, reader, "key") {
				t.Fatal("a connection of the client is in another database")
			}
		}
	})
}

func TestAClusterHasNoOtherDatabaseForDictionaries(t *testing.T) {
	_, err := valkeygo.Compress(foreign{}, compression.Options{DictionaryDatabase: compression.Database(0)})
	if refused := (*envelope.OptionError)(nil); !errors.As(err, &refused) || refused.Option != "DictionaryDatabase" {
		t.Errorf("got %v", err)
	}
}
