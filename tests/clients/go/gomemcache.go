package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/bradfitz/gomemcache/memcache"
)

// memcachedChecks are those of gomemcache, which knows no password.
var memcachedChecks = []struct {
	name string
	run  func(*memcache.Client)
}{
	{"connect", func(client *memcache.Client) {
		succeed(client.Ping())
		succeed(client.FlushAll())
	}},
	{"binary", keepsBytesAndFlags},
	{"missing", func(client *memcache.Client) {
		_, err := client.Get("missing")
		equal(errors.Is(err, memcache.ErrCacheMiss), true)
		equal(errors.Is(client.Delete("missing"), memcache.ErrCacheMiss), true)
	}},
	{"modes", storesInEveryWay},
	{"expiry", touchesAndExpires},
	{"several", getsSeveral},
	{"counter", countsUpAndDown},
	{"cas", swapsWhatNobodyChanged},
	{"errors", tellsWhatIsTooLarge},
	{"concurrency", servesManyGoroutines},
}

func tryMemcached(address string, report func(line)) {
	client := memcache.New(address)
	defer client.Close()
	for _, check := range memcachedChecks {
		detail := complaint(func() { check.run(client) })
		report(line{"gomemcache", "text", check.name, detail == "", detail})
	}
}

func keepsBytesAndFlags(client *memcache.Client) {
	value := make([]byte, 3*256)
	for index := range value {
		value[index] = byte(index)
	}
	succeed(client.Set(&memcache.Item{Key: "binary", Value: value, Flags: 1<<32 - 1}))
	read := must(client.Get("binary"))
	equal(read.Value, value)
	equal(read.Flags, uint32(1<<32-1))
	succeed(client.Set(&memcache.Item{Key: "empty", Value: []byte{}}))
	equal(len(must(client.Get("empty")).Value), 0)
}

func storesInEveryWay(client *memcache.Client) {
	item := &memcache.Item{Key: "modes", Value: []byte("b"), Flags: 7}
	equal(errors.Is(client.Replace(item), memcache.ErrNotStored), true)
	equal(errors.Is(client.Append(item), memcache.ErrNotStored), true)
	succeed(client.Add(item))
	equal(errors.Is(client.Add(item), memcache.ErrNotStored), true)
	succeed(client.Append(&memcache.Item{Key: "modes", Value: []byte("c")}))
	succeed(client.Prepend(&memcache.Item{Key: "modes", Value: []byte("a")}))
	read := must(client.Get("modes"))
	equal(string(read.Value), "abc")
	equal(read.Flags, uint32(7))
	succeed(client.Delete("modes"))
}

func touchesAndExpires(client *memcache.Client) {
	succeed(client.Set(&memcache.Item{Key: "expiring", Value: []byte("value"), Expiration: 100}))
	succeed(client.Touch("expiring", 200))
	equal(string(must(client.GetAndTouch("expiring", -1)).Value), "value")
	_, err := client.Get("expiring")
	equal(errors.Is(err, memcache.ErrCacheMiss), true)
	equal(errors.Is(client.Touch("expiring", 200), memcache.ErrCacheMiss), true)
}

func getsSeveral(client *memcache.Client) {
	var keys []string
	for number := range 500 {
		key := fmt.Sprintf("several:%d", number)
		keys = append(keys, key)
		succeed(client.Set(&memcache.Item{Key: key, Value: bytes.Repeat([]byte(key), 20)}))
	}
	read := must(client.GetMulti(append(keys, "missing")))
	equal(len(read), len(keys))
	for _, key := range keys {
		equal(string(read[key].Value), strings.Repeat(key, 20))
	}
}

func countsUpAndDown(client *memcache.Client) {
	_, err := client.Increment("counter", 1)
	equal(errors.Is(err, memcache.ErrCacheMiss), true)
	succeed(client.Set(&memcache.Item{Key: "counter", Value: []byte("10")}))
	equal(must(client.Increment("counter", 32)), uint64(42))
	equal(must(client.Decrement("counter", 100)), uint64(0))
	succeed(client.Set(&memcache.Item{Key: "text", Value: []byte("text")}))
	_, err = client.Increment("text", 1)
	says(err, "non-numeric value")
}

func swapsWhatNobodyChanged(client *memcache.Client) {
	succeed(client.Set(&memcache.Item{Key: "cas", Value: []byte("first")}))
	mine, others := must(client.Get("cas")), must(client.Get("cas"))
	others.Value = []byte("others")
	succeed(client.CompareAndSwap(others))
	mine.Value = []byte("mine")
	equal(errors.Is(client.CompareAndSwap(mine), memcache.ErrCASConflict), true)
	equal(string(must(client.Get("cas")).Value), "others")
	succeed(client.Delete("cas"))
	equal(errors.Is(client.CompareAndSwap(mine), memcache.ErrCacheMiss), true)
}

func tellsWhatIsTooLarge(client *memcache.Client) {
	says(client.Set(&memcache.Item{Key: "large", Value: make([]byte, 2<<20)}), "too large")
	equal(errors.Is(client.Set(&memcache.Item{Key: strings.Repeat("k", 251)}), memcache.ErrMalformedKey), true)
	succeed(client.Ping())
}

func servesManyGoroutines(client *memcache.Client) {
	var everybody sync.WaitGroup
	complaints := make([]string, 50)
	for number := range complaints {
		everybody.Go(func() {
			complaints[number] = complaint(func() {
				key, value := fmt.Sprintf("many:%d", number), fmt.Sprint(number)
				succeed(client.Set(&memcache.Item{Key: key, Value: []byte(value)}))
				equal(string(must(client.Get(key)).Value), value)
			})
		})
	}
	everybody.Wait()
	equal(complaints, make([]string, len(complaints)))
}
