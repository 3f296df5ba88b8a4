package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// goRedisLog keeps what go-redis logs.
type goRedisLog struct {
	sync.Mutex
	lines []string
}

func (log *goRedisLog) Printf(_ context.Context, format string, arguments ...any) {
	log.Lock()
	defer log.Unlock()
	log.lines = append(log.lines, fmt.Sprintf(format, arguments...))
}

func (log *goRedisLog) take() []string {
	log.Lock()
	defer log.Unlock()
	taken := log.lines
	log.lines = []string{}
	return taken
}

func newGoRedis() library {
	log := &goRedisLog{lines: []string{}}
	redis.SetLogger(log)
	return library{"go-redis", "go-redis", openGoRedis, log.take}
}

type goRedis struct {
	*redis.Client
	ctx context.Context
}

func openGoRedis(ctx context.Context, options options) (client, error) {
	opened := redis.NewClient(&redis.Options{
		Addr:       options.address,
		Protocol:   options.protocol,
		ClientName: options.name,
		Password:   options.password,
	})
	return goRedis{opened, ctx}, nil
}

func (client goRedis) ping() (string, error) {
	return client.Ping(client.ctx).Result()
}

func (client goRedis) clientInfo() (string, error) {
	return client.Do(client.ctx, "CLIENT", "INFO").Text()
}

func (client goRedis) flushAll() error {
	return client.FlushAll(client.ctx).Err()
}

func (client goRedis) set(key string, value []byte, ttl time.Duration) error {
	return client.Set(client.ctx, key, value, ttl).Err()
}

func (client goRedis) get(key string) ([]byte, error) {
	value, err := client.Get(client.ctx, key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return value, err
}

func (client goRedis) mset(values map[string]string) error {
	return client.MSet(client.ctx, values).Err()
}

func (client goRedis) mget(keys ...string) ([]any, error) {
	return client.MGet(client.ctx, keys...).Result()
}

func (client goRedis) incrBy(key string, by int64) (int64, error) {
	return client.IncrBy(client.ctx, key, by).Result()
}

func (client goRedis) del(keys ...string) (int64, error) {
	return client.Del(client.ctx, keys...).Result()
}

func (client goRedis) ttl(key string) (int64, error) {
	ttl, err := client.TTL(client.ctx, key).Result()
	if ttl < 0 {
		// -1 and -2 come as they are.
		return int64(ttl), err
	}
	return int64(ttl.Seconds()), err
}

func (client goRedis) expire(key string, ttl time.Duration) (bool, error) {
	return client.Expire(client.ctx, key, ttl).Result()
}

func (client goRedis) persist(key string) (bool, error) {
	return client.Persist(client.ctx, key).Result()
}

func (client goRedis) scan(pattern string, count int64) (keys []string, err error) {
	found := client.Scan(client.ctx, 0, pattern, count).Iterator()
	for found.Next(client.ctx) {
		keys = append(keys, found.Val())
	}
	return keys, found.Err()
}

func (client goRedis) command(arguments ...string) error {
	words := make([]any, len(arguments))
	for index, argument := range arguments {
		words[index] = argument
	}
	return client.Do(client.ctx, words...).Err()
}

func (client goRedis) pipeline(keys []string, value string) (read []string, refused error, err error) {
	pipeline := client.Pipeline()
	for _, key := range keys {
		pipeline.Set(client.ctx, key, value, 0)
	}
	incr := pipeline.Incr(client.ctx, keys[0])
	var gets []*redis.StringCmd
	for _, key := range keys {
		gets = append(gets, pipeline.Get(client.ctx, key))
	}
	// Exec gives the error of the first command that failed, which is INCR.
	if _, err := pipeline.Exec(client.ctx); !errors.Is(err, incr.Err()) {
		return nil, nil, err
	}
	for _, get := range gets {
		read = append(read, get.Val())
	}
	return read, incr.Err(), nil
}

func (client goRedis) transaction(key string, number int64) (int64, string, error) {
	var incr *redis.IntCmd
	var get *redis.StringCmd
	_, err := client.TxPipelined(client.ctx, func(transaction redis.Pipeliner) error {
		transaction.Set(client.ctx, key, number, 0)
		incr = transaction.Incr(client.ctx, key)
		get = transaction.Get(client.ctx, key)
		return nil
	})
	return incr.Val(), get.Val(), err
}

func (client goRedis) deleteIfEqual(key, value string) (int64, error) {
	return redis.NewScript(deleteIfEqualScript).Run(client.ctx, client, []string{key}, value).Int64()
}

func (client goRedis) watch(key, value string, meddle func()) (bool, error) {
	err := client.Watch(client.ctx, func(watching *redis.Tx) error {
		meddle()
		_, err := watching.TxPipelined(client.ctx, func(transaction redis.Pipeliner) error {
			transaction.Set(client.ctx, key, value, 0)
			return nil
		})
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return false, nil
	}
	return err == nil, err
}

func (client goRedis) close() {
	succeed(client.Close())
}
