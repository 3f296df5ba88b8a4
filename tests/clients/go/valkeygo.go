package main

import (
	"context"
	"strconv"
	"time"

	"github.com/valkey-io/valkey-go"
)

func newValkeyGo() library {
	// It has no log: what it does not like is an error.
	return library{"valkey-go", "valkey", openValkeyGo, func() []string { return []string{} }}
}

type valkeyGo struct {
	valkey.Client
	ctx context.Context
}

func openValkeyGo(ctx context.Context, options options) (client, error) {
	opened, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{options.address},
		ClientName:  options.name,
		Password:    options.password,
		AlwaysRESP2: options.protocol == 2,
		// Its cache is on by default and needs RESP3: without it the library insists on being told.
		DisableCache: options.protocol == 2,
	})
	return valkeyGo{opened, ctx}, err
}

func (client valkeyGo) ping() (string, error) {
	return client.Do(client.ctx, client.B().Ping().Build()).ToString()
}

func (client valkeyGo) clientInfo() (string, error) {
	return client.Do(client.ctx, client.B().ClientInfo().Build()).ToString()
}

func (client valkeyGo) flushAll() error {
	return client.Do(client.ctx, client.B().Flushall().Build()).Error()
}

func (client valkeyGo) set(key string, value []byte, ttl time.Duration) error {
	set := client.B().Set().Key(key).Value(valkey.BinaryString(value))
	if ttl > 0 {
		return client.Do(client.ctx, set.Ex(ttl).Build()).Error()
	}
	return client.Do(client.ctx, set.Build()).Error()
}

func (client valkeyGo) get(key string) ([]byte, error) {
	value, err := client.Do(client.ctx, client.B().Get().Key(key).Build()).AsBytes()
	if valkey.IsValkeyNil(err) {
		return nil, nil
	}
	return value, err
}

func (client valkeyGo) mset(values map[string]string) error {
	mset := client.B().Mset().KeyValue()
	for key, value := range values {
		mset = mset.KeyValue(key, value)
	}
	return client.Do(client.ctx, mset.Build()).Error()
}

func (client valkeyGo) mget(keys ...string) (values []any, err error) {
	replies, err := client.Do(client.ctx, client.B().Mget().Key(keys...).Build()).ToArray()
	for _, reply := range replies {
		value, err := reply.ToAny()
		if err != nil && !valkey.IsValkeyNil(err) {
			return nil, err
		}
		values = append(values, value)
	}
	return values, err
}

func (client valkeyGo) incrBy(key string, by int64) (int64, error) {
	return client.Do(client.ctx, client.B().Incrby().Key(key).Increment(by).Build()).AsInt64()
}

func (client valkeyGo) del(keys ...string) (int64, error) {
	return client.Do(client.ctx, client.B().Del().Key(keys...).Build()).AsInt64()
}

func (client valkeyGo) ttl(key string) (int64, error) {
	return client.Do(client.ctx, client.B().Ttl().Key(key).Build()).AsInt64()
}

func (client valkeyGo) expire(key string, ttl time.Duration) (bool, error) {
	seconds := int64(ttl.Seconds())
	return client.Do(client.ctx, client.B().Expire().Key(key).Seconds(seconds).Build()).AsBool()
}

func (client valkeyGo) persist(key string) (bool, error) {
	return client.Do(client.ctx, client.B().Persist().Key(key).Build()).AsBool()
}

func (client valkeyGo) scan(pattern string, count int64) (keys []string, err error) {
	var page valkey.ScanEntry
	for {
		scan := client.B().Scan().Cursor(page.Cursor).Match(pattern).Count(count).Build()
		page, err = client.Do(client.ctx, scan).AsScanEntry()
		if err != nil {
			return nil, err
		}
		keys = append(keys, page.Elements...)
		if page.Cursor == 0 {
			return keys, nil
		}
	}
}

func (client valkeyGo) command(arguments ...string) error {
	return client.Do(client.ctx, client.B().Arbitrary(arguments...).Build()).Error()
}

func (client valkeyGo) pipeline(keys []string, value string) (read []string, refused error, err error) {
	var commands valkey.Commands
	for _, key := range keys {
		commands = append(commands, client.B().Set().Key(key).Value(value).Build())
	}
	commands = append(commands, client.B().Incr().Key(keys[0]).Build())
	for _, key := range keys {
		commands = append(commands, client.B().Get().Key(key).Build())
	}
	replies := client.DoMulti(client.ctx, commands...)
	for _, reply := range replies[len(keys)+1:] {
		value, err := reply.ToString()
		if err != nil {
			return nil, nil, err
		}
		read = append(read, value)
	}
	return read, replies[len(keys)].Error(), nil
}

func (client valkeyGo) transaction(key string, number int64) (counted int64, read string, err error) {
	err = client.Dedicated(func(own valkey.DedicatedClient) error {
		replies := own.DoMulti(client.ctx,
			own.B().Multi().Build(),
			own.B().Set().Key(key).Value(strconv.FormatInt(number, 10)).Build(),
			own.B().Incr().Key(key).Build(),
			own.B().Get().Key(key).Build(),
			own.B().Exec().Build(),
		)
		results, err := replies[len(replies)-1].ToArray()
		if err != nil {
			return err
		}
		if counted, err = results[1].AsInt64(); err != nil {
			return err
		}
		read, err = results[2].ToString()
		return err
	})
	return counted, read, err
}

func (client valkeyGo) deleteIfEqual(key, value string) (int64, error) {
	return valkey.NewLuaScript(deleteIfEqualScript).Exec(client.ctx, client, []string{key}, []string{value}).AsInt64()
}

func (client valkeyGo) watch(key, value string, meddle func()) (done bool, err error) {
	err = client.Dedicated(func(own valkey.DedicatedClient) error {
		if err := own.Do(client.ctx, own.B().Watch().Key(key).Build()).Error(); err != nil {
			return err
		}
		meddle()
		replies := own.DoMulti(client.ctx,
			own.B().Multi().Build(),
			own.B().Set().Key(key).Value(value).Build(),
			own.B().Exec().Build(),
		)
		err := replies[len(replies)-1].Error()
		done = err == nil
		if valkey.IsValkeyNil(err) {
			return nil
		}
		return err
	})
	return done, err
}

func (client valkeyGo) close() {
	client.Close()
}
