package valkeygo_test

import (
	"context"
	"testing"

	"github.com/valkey-io/valkey-go"

	"snugly.dev/go/compression"
	"snugly.dev/go/valkeygo"
)

func TestDedicatedClients(t *testing.T) {
	eachProtocol(t, compression.Options{}, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		ok(t, client.Dedicated(func(own valkey.DedicatedClient) error {
			b := own.B()
			ok(t, own.Do(ctx, b.Set().Key("key").Value(page(1)).Build()).Error())
			ok(t, own.Do(ctx, b.Watch().Key("key").Build()).Error())
			is(t, page(1))(own.Do(ctx, b.Get().Key("key").Build()).ToString())
			// A transaction over several calls.
			ok(t, own.Do(ctx, b.Multi().Build()).Error())
			ok(t, own.Do(ctx, b.Set().Key("key").Value(page(2)).Get().Build()).Error())
			for _, result := range own.DoMulti(ctx, b.Incr().Key("counter").Build(), b.Mget().Key("key", "none").Build()) {
				ok(t, result.Error())
			}
			replies, err := own.Do(ctx, b.Exec().Build()).ToArray()
			ok(t, err)
			is(t, page(1))(replies[0].ToString())
			is(t, int64(1))(replies[1].AsInt64())
			is(t, []string{page(2), ""})(replies[2].AsStrSlice())
			is(t, page(2))(own.Do(ctx, b.Get().Key("key").Build()).ToString())
			ok(t, own.Do(ctx, b.Multi().Build()).Error())
			ok(t, own.Do(ctx, b.Get().Key("key").Build()).Error())
			ok(t, own.Do(ctx, b.Discard().Build()).Error())
			is(t, page(2))(own.Do(ctx, b.Get().Key("key").Build()).ToString())
			return nil
		}))
		expectStored(t, plain, "key", page(2))
		own, release := client.Dedicate()
		defer release()
		is(t, page(2))(own.Do(ctx, own.B().Get().Key("key").Build()).ToString())
	})
}

// refusing are the ways in which a command of an open transaction is refused and the transaction ended, and what that gives.
var refusing = map[string]func(own valkey.DedicatedClient) error{
	"single commands": func(own valkey.DedicatedClient) error {
		_ = own.Do(ctx, own.B().Append().Key("key").Value("more").Build())
		return own.Do(ctx, own.B().Exec().Build()).Error()
	},
	"commands after the refused one": func(own valkey.DedicatedClient) error {
		_ = own.Do(ctx, own.B().Append().Key("key").Value("more").Build())
		_ = own.Do(ctx, own.B().Set().Key("key").Value(page(3)).Build())
		return own.Do(ctx, own.B().Exec().Build()).Error()
	},
	"a refused command and EXEC at once": func(own valkey.DedicatedClient) error {
		return own.DoMulti(ctx, own.B().Append().Key("key").Value("more").Build(), own.B().Exec().Build())[1].Error()
	},
	"several commands, and EXEC alone": func(own valkey.DedicatedClient) error {
		_ = own.DoMulti(ctx, own.B().Append().Key("key").Value("more").Build(), own.B().Incr().Key("counter").Build())
		return own.Do(ctx, own.B().Exec().Build()).Error()
	},
	"a refused command, and EXEC with others": func(own valkey.DedicatedClient) error {
		_ = own.Do(ctx, own.B().Append().Key("key").Value("more").Build())
		return own.DoMulti(ctx, own.B().Incr().Key("counter").Build(), own.B().Exec().Build())[1].Error()
	},
	"EXEC that was not sent at first": func(own valkey.DedicatedClient) error {
		_ = own.Do(ctx, own.B().Append().Key("key").Value("more").Build())
		ended, end := context.WithCancel(ctx)
		end()
		_ = own.Do(ended, own.B().Exec().Build())
		return own.Do(ctx, own.B().Exec().Build()).Error()
	},
}

func TestATransactionOfWhichACommandIsRefusedIsNotRun(t *testing.T) {
	eachProtocol(t, compression.Options{}, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		for name, refuse := range refusing {
			ok(t, client.Do(ctx, client.B().Set().Key("key").Value(page(1)).Build()).Error())
			ok(t, client.Dedicated(func(own valkey.DedicatedClient) error {
				b := own.B()
				ok(t, own.Do(ctx, b.Multi().Build()).Error())
				ok(t, own.Do(ctx, b.Set().Key("key").Value(page(2)).Build()).Error())
				expectRefused(t, refuse(own))
				// The next one is none of that one's business.
				ok(t, own.Do(ctx, b.Multi().Build()).Error())
				ok(t, own.Do(ctx, b.Get().Key("key").Build()).Error())
				replies, err := own.Do(ctx, b.Exec().Build()).ToArray()
				ok(t, err)
				if is(t, page(1))(replies[0].ToString()); t.Failed() {
					t.Fatal(name)
				}
				return nil
			}))
			expectStored(t, plain, "key", page(1))
		}
		same(t, exists(t, plain, "counter"), false)
	})
}

func TestATransactionOfWhichACommandIsRefusedMayBeDiscarded(t *testing.T) {
	eachProtocol(t, compression.Options{}, func(t *testing.T, client *valkeygo.Client, plain valkey.Client) {
		ok(t, client.Dedicated(func(own valkey.DedicatedClient) error {
			b := own.B()
			ok(t, own.Do(ctx, b.Multi().Build()).Error())
			expectRefused(t, own.Do(ctx, b.Append().Key("key").Value("more").Build()).Error())
			ok(t, own.Do(ctx, b.Discard().Build()).Error())
			ok(t, own.Do(ctx, b.Set().Key("key").Value(page(1)).Build()).Error())
			return nil
		}))
		expectStored(t, plain, "key", page(1))
	})
}
