// Package cache keeps Go values in Redis, Valkey or snugly: typed, small, and loaded once.
//
//	users, err := cache.New[User](goredis.Backend(client), cache.Options{Prefix: "user:", TTL: time.Hour})
//	...
//	err = users.Set(ctx, "123", user)
//	user, err = users.Get(ctx, "123")
//	user, err = users.GetOrLoad(ctx, "123", func(ctx context.Context) (User, error) { return database.User(ctx, "123") })
//
// # What is stored
//
// An entry is the value as JSON or as MessagePack, alone or in an envelope of package envelope, and nothing else: no
// header, no time. So other programs can read it, and snugly decode shows it. What is JSON and what is MessagePack is
// told by the first byte, so every [Codec] reads what any other has written, and changing it needs no migration. How
// long an entry is fresh follows from the time to live that the server keeps for it. The single byte c1, which begins
// neither JSON nor MessagePack, says that something does not exist.
//
// # MessagePack
//
// It needs the code that github.com/tinylib/msgp generates for the type, once that is a tool of the application's module
// (go get -tool github.com/tinylib/msgp):
//
//	//go:generate go tool msgp
//	type User struct {
//		ID   int64  `msg:"id"`
//		Name string `msg:"name"`
//	}
//
// Types that have it are written as MessagePack by the codecs Msgp, MsgpZstd and, where that is better, Auto. For
// []User to be one, give it a name (type Users []User). [New] looks at the type and refuses one whose fields have no
// msg tags or whose generated code is older than its fields: the names in the tags are what is stored, as the names of
// columns are. Never change one, and never use one again for something else, without another Options.Version.
// Package shims has what types need that msgp does not know.
//
// # When it does not help
//
// A number, a short string, or one struct of a few fields is hardly smaller in any codec: compression begins at 64 bytes,
// and what a client, a server and a network do for each key costs more than encoding a hundred bytes. Store those with
// the client alone. Lists and large structs gain the most; many small values that are alike gain with a dictionary, which is
// for clients that compress: with the codecs JSON and Msgp they do that for entries, too. How much depends on the data:
// measure yours with [Cache.Encode] and [Cache.Decode].
//
// # What it knows
//
// The package knows Go types, codecs and time. It knows no client library: what is behind [Backend] is for the packages
// goredis and valkeygo.
package cache
