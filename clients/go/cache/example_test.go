package cache_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/cache"
	"snugly.dev/go/envelope"
	"snugly.dev/go/goredis"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/valkeygo"
)

// address is the server of the examples.
var address string

func TestMain(m *testing.M) {
	started, stop, isHere := servers.ForExamples()
	if !isHere {
		_ = flag.Set("test.skip", "^Example")
		os.Exit(m.Run())
	}
	address = started
	code := m.Run()
	stop()
	os.Exit(code)
}

func Example() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()

	users, err := cache.New[User](goredis.Backend(client), cache.Options{Prefix: "user:", Version: 2, TTL: time.Hour})
	if err != nil {
		panic(err)
	}
	defer users.Close()

	err = users.Set(ctx, "123", User{ID: 123, Name: "Ada"}) // at the key v2:user:123
	if err != nil {
		panic(err)
	}
	user, err := users.Get(ctx, "123")
	fmt.Println(users.Key("123"), user.Name, err)

	_, err = users.Get(ctx, "124")
	fmt.Println(errors.Is(err, cache.ErrMiss))

	user, err = users.GetOrLoad(ctx, "124", func(ctx context.Context) (User, error) {
		return User{ID: 124, Name: "Grace"}, nil // from the database
	})
	fmt.Println(user.Name, err)
	// Output:
	// v2:user:123 Ada <nil>
	// true
	// Grace <nil>
}

// With valkey-go everything is the same but the backend.
func Example_valkeyGo() {
	ctx := context.Background()
	client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{address}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	users, err := cache.New[User](valkeygo.Backend(client), cache.Options{Prefix: "valkey-go:", TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer users.Close()
	err = users.SetMany(ctx, map[string]User{"1": {Name: "Ada"}, "2": {Name: "Grace"}})
	if err != nil {
		log.Fatal(err)
	}
	found, err := users.GetMany(ctx, "1", "2", "3")
	fmt.Println(len(found), found["2"].Name, err)
	// Output: 2 Grace <nil>
}

// A miss is loaded once for all who wait; for a minute after its hour an entry is served while it is loaded anew; and
// what does not exist is remembered for ten seconds.
func ExampleCache_GetOrLoad() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	users, err := cache.New[User](goredis.Backend(client), cache.Options{
		Prefix:      "loaded:",
		TTL:         time.Hour,
		Stale:       time.Minute,
		NegativeTTL: 10 * time.Second,
		OnError:     func(key string, err error) { log.Printf("user %s: %v", key, err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer users.Close()

	table := map[string]User{"123": {ID: 123, Name: "Ada"}}
	get := func(id string) {
		user, err := users.GetOrLoad(ctx, id, func(context.Context) (User, error) {
			fmt.Println("loading", id)
			user, exists := table[id]
			if !exists {
				return User{}, cache.ErrNotFound
			}
			return user, nil
		})
		fmt.Printf("%q %v\n", user.Name, err)
	}
	get("123")
	get("123")
	get("124")
	get("124")
	// Output:
	// loading 123
	// "Ada" <nil>
	// "Ada" <nil>
	// loading 124
	// "" does not exist
	// "" does not exist
}

// Plain JSON that is there already is read as it is, so a program moves without emptying its cache.
func ExampleNew_fromPlainJSON() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	client.Set(ctx, "old:1", `{"ID":1,"Name":"Ada"}`, 0)

	users, err := cache.New[User](goredis.Backend(client), cache.Options{Prefix: "old:", TTL: time.Hour, Codec: cache.Msgp})
	if err != nil {
		log.Fatal(err)
	}
	defer users.Close()
	user, err := users.Get(ctx, "1")
	fmt.Println(user.Name, err)

	err = users.Set(ctx, "1", user)
	fmt.Printf("%x %v\n", client.Get(ctx, "old:1").Val()[:4], err)

	// While people look at entries with other tools:
	users.WritePlainJSON(true)
	err = users.Set(ctx, "1", user)
	fmt.Println(client.Get(ctx, "old:1").Val(), err)
	// Output:
	// Ada <nil>
	// 83a26964 <nil>
	// {"ID":1,"Name":"Ada","Emails":null} <nil>
}

// A type that MessagePack would drop something of, or store under names that change with the code, is refused.
func ExampleTypeError() {
	type Account struct {
		ID      int64
		Balance int64
	}
	_, err := cache.New[Account](nil, cache.Options{TTL: time.Hour, Codec: cache.Msgp})
	fmt.Println(err)
	// Output: cache_test.Account cannot be stored as MessagePack: it has no generated code: run github.com/tinylib/msgp on it, or choose another codec
}

// Another level, and what else package envelope can be told.
func ExampleOptions_envelope() {
	fastest, err := envelope.New(envelope.Options{CompressionLevel: 1, MinCompressionSize: 256})
	if err != nil {
		log.Fatal(err)
	}
	users, err := cache.New[User](nil, cache.Options{TTL: time.Hour, Codec: cache.JSONZstd, Envelope: fastest})
	if err != nil {
		log.Fatal(err)
	}
	defer users.Close()
	fmt.Println(users.Codec())
	// Output: json+zstd
}
