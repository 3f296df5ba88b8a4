package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// options are what an application says of a connection; everything else is as the library has it.
type options struct {
	address  string
	protocol int
	name     string
	password string
}

// library is a client library.
type library struct {
	name string
	// announces is how what it sends as its name with CLIENT SETINFO begins.
	announces string
	open      func(context.Context, options) (client, error)
	// complaints are what the library has logged since it was last asked.
	complaints func() []string
}

// client is what the checks ask of a library, in its own words.
type client interface {
	ping() (string, error)
	clientInfo() (string, error)
	flushAll() error
	// set stores a value; a ttl of zero is none.
	set(key string, value []byte, ttl time.Duration) error
	// get is nil for a key that is not there.
	get(key string) ([]byte, error)
	mset(values map[string]string) error
	// mget has nil for keys that are not there.
	mget(keys ...string) ([]any, error)
	incrBy(key string, by int64) (int64, error)
	del(keys ...string) (int64, error)
	// ttl is in seconds; -1 without expiry, -2 without the key.
	ttl(key string) (int64, error)
	expire(key string, ttl time.Duration) (bool, error)
	persist(key string) (bool, error)
	scan(pattern string, count int64) ([]string, error)
	command(arguments ...string) error
	// pipeline sends at once: SET of every key, INCR of the first, GET of every key. It gives the values read, and
	// the error of INCR.
	pipeline(keys []string, value string) (read []string, refused error, err error)
	// transaction is SET of the number, INCR and GET between MULTI and EXEC.
	transaction(key string, number int64) (counted int64, read string, err error)
	// deleteIfEqual deletes the key in a script if it has the value: whether that was done, as a number.
	deleteIfEqual(key, value string) (int64, error)
	// watch watches the key, lets somebody meddle, and sets it between MULTI and EXEC: whether that was done.
	watch(key, value string, meddle func()) (bool, error)
	close()
}

// run is one library in one protocol against the servers, for as long as its context lasts.
type run struct {
	context.Context
	library  library
	protocol int
	address  string
	locked   string
	opened   client
}

var libraries = []library{newGoRedis(), newValkeyGo()}

const clientName = "go-tester"

var checks = []struct {
	name string
	run  func(*run)
}{
	{"connect", connects},
	{"identity", saysWhoItIs},
	{"json", keepsJSON},
	{"binary", keepsBytes},
	{"missing", knowsNothingOfAKeyThatIsNotThere},
	{"expiry", expires},
	{"several", storesSeveral},
	{"counter", counts},
	{"scan", scansAllKeys},
	{"pipeline", pipelines},
	{"large-pipeline", readsNothingUntilAllIsWritten},
	{"delete", deletes},
	{"errors", reportsErrors},
	{"concurrency", servesManyAtOnce},
	{"transaction", runsATransaction},
	{"script", runsAScript},
	{"watch", watches},
	{"password", givesThePassword},
	{"quiet", complainsAboutNothing},
}

// client is the connection of this run, opened when it is first needed.
func (run *run) client() client {
	if run.opened == nil {
		run.opened = must(run.library.open(run, options{address: run.address, protocol: run.protocol, name: clientName}))
	}
	return run.opened
}

func (run *run) close() {
	if run.opened != nil {
		run.opened.close()
	}
}

func connects(run *run) {
	equal(must(run.client().ping()), "PONG")
	succeed(run.client().flushAll())
}

func saysWhoItIs(run *run) {
	fields := map[string]string{}
	for _, field := range strings.Fields(must(run.client().clientInfo())) {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	equal(fields["name"], clientName)
	equal(fields["resp"], fmt.Sprint(run.protocol))
	if announced := run.library.announces; !strings.HasPrefix(fields["lib-name"], announced) {
		fail("lib-name is %q, and should begin with %q", fields["lib-name"], announced)
	}
}

func keepsJSON(run *run) {
	type user struct {
		ID   int
		Name string
		Tags []string
	}
	users := make([]user, 200)
	for number := range users {
		users[number] = user{number, fmt.Sprintf("Zürich, 🦊 %d", number), []string{"cache", "compressed"}}
	}
	succeed(run.client().set("json", must(json.Marshal(users)), 0))
	var read []user
	succeed(json.Unmarshal(must(run.client().get("json")), &read))
	equal(read, users)
}

func keepsBytes(run *run) {
	value := make([]byte, 3*256)
	for index := range value {
		value[index] = byte(index)
	}
	succeed(run.client().set("binary", value, 0))
	equal(must(run.client().get("binary")), value)
	succeed(run.client().set("empty", []byte{}, 0))
	equal(must(run.client().get("empty")), []byte{})
}

func knowsNothingOfAKeyThatIsNotThere(run *run) {
	equal(must(run.client().get("missing")), []byte(nil))
}

func expires(run *run) {
	client := run.client()
	succeed(client.set("expiring", []byte("value"), 100*time.Second))
	between(must(client.ttl("expiring")), 1, 100)
	equal(must(client.expire("expiring", 50*time.Second)), true)
	between(must(client.ttl("expiring")), 1, 50)
	equal(must(client.persist("expiring")), true)
	equal(must(client.ttl("expiring")), int64(-1))
	equal(must(client.expire("missing", 50*time.Second)), false)
	equal(must(client.ttl("missing")), int64(-2))
}

func storesSeveral(run *run) {
	succeed(run.client().mset(map[string]string{"one": "1", "two": "Zürich, 🦊"}))
	equal(must(run.client().mget("one", "missing", "two")), []any{"1", nil, "Zürich, 🦊"})
}

func counts(run *run) {
	equal(must(run.client().incrBy("counter", 1)), int64(1))
	equal(must(run.client().incrBy("counter", 41)), int64(42))
	equal(must(run.client().get("counter")), []byte("42"))
}

func scansAllKeys(run *run) {
	values := map[string]string{}
	for number := range 500 {
		values[fmt.Sprintf("scan:%d", number)] = "value"
	}
	succeed(run.client().mset(values))
	found := must(run.client().scan("scan:*", 50))
	slices.Sort(found)
	equal(slices.Compact(found), slices.Sorted(maps.Keys(values)))
}

func pipelines(run *run) {
	var keys, values []string
	value := strings.Repeat("value ", 100)
	for number := range 200 {
		keys = append(keys, fmt.Sprintf("pipeline:%d", number))
		values = append(values, value)
	}
	read, refused, err := run.client().pipeline(keys, value)
	succeed(err)
	equal(read, values)
	says(refused, "value is not an integer or out of range")
}

func readsNothingUntilAllIsWritten(run *run) {
	keys := slices.Repeat([]string{"large-pipeline:" + strings.Repeat("k", 100)}, 200_000)
	value := strings.Repeat("s", 200)
	read, refused, err := run.client().pipeline(keys, value)
	succeed(err)
	equal(read, slices.Repeat([]string{value}, len(keys)))
	says(refused, "value is not an integer or out of range")
}

func deletes(run *run) {
	succeed(run.client().mset(map[string]string{"one": "1", "two": "2"}))
	equal(must(run.client().del("one", "two", "missing")), int64(2))
	equal(must(run.client().get("one")), []byte(nil))
}

func reportsErrors(run *run) {
	client := run.client()
	succeed(client.set("text", []byte("text"), 0))
	_, err := client.incrBy("text", 1)
	says(err, "value is not an integer or out of range")
	says(client.command("NO-SUCH-COMMAND", "argument"), "unknown command 'NO-SUCH-COMMAND'")
	equal(must(client.get("text")), []byte("text"))
}

func servesManyAtOnce(run *run) {
	var everybody sync.WaitGroup
	complaints := make([]string, 50)
	for number := range complaints {
		everybody.Go(func() {
			complaints[number] = complaint(func() {
				key, value := fmt.Sprintf("many:%d", number), fmt.Sprint(number)
				succeed(run.client().set(key, []byte(value), 0))
				equal(must(run.client().get(key)), []byte(value))
			})
		})
	}
	everybody.Wait()
	equal(complaints, make([]string, len(complaints)))
}

func runsATransaction(run *run) {
	counted, read, err := run.client().transaction("transaction", 41)
	succeed(err)
	equal(counted, int64(42))
	equal(read, "42")
}

const deleteIfEqualScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then
  return redis.call("DEL", KEYS[1])
end
return 0`

func runsAScript(run *run) {
	client := run.client()
	succeed(client.set("lock", []byte("mine"), 0))
	equal(must(client.deleteIfEqual("lock", "another's")), int64(0))
	equal(must(client.deleteIfEqual("lock", "mine")), int64(1))
	equal(must(client.get("lock")), []byte(nil))
}

func watches(run *run) {
	client := run.client()
	meddle := func() { succeed(client.set("watched", []byte("somebody else"), 0)) }
	equal(must(client.watch("watched", "not to be", meddle)), false)
	equal(must(client.get("watched")), []byte("somebody else"))
	equal(must(client.watch("watched", "mine", func() {})), true)
	equal(must(client.get("watched")), []byte("mine"))
}

func givesThePassword(run *run) {
	open := func(password string) (string, error) {
		client, err := run.library.open(run, options{address: run.locked, protocol: run.protocol, password: password})
		if err != nil {
			return "", err
		}
		defer client.close()
		return client.ping()
	}
	equal(must(open("secret")), "PONG")
	_, wrong := open("wrong")
	says(wrong, "WRONGPASS")
	_, none := open("")
	says(none, "NOAUTH")
}

func complainsAboutNothing(run *run) {
	equal(run.library.complaints(), []string{})
}

// failure is what a check panics with when something is not as it should be.
type failure string

// complaint is what the failure says that ends `check`, empty if none does.
func complaint(check func()) (detail string) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case failure:
			detail = string(cause)
		default:
			panic(cause)
		}
	}()
	check()
	return ""
}

func fail(format string, arguments ...any) {
	panic(failure(fmt.Sprintf(format, arguments...)))
}

func succeed(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func must[T any](value T, err error) T {
	succeed(err)
	return value
}

func equal(got, expected any) {
	if !reflect.DeepEqual(got, expected) {
		fail("got %.200q, expected %.200q", fmt.Sprint(got), fmt.Sprint(expected))
	}
}

func between(got, least, most int64) {
	if got < least || got > most {
		fail("got %d, expected %d to %d", got, least, most)
	}
}

func says(err error, words string) {
	if err == nil || !strings.Contains(err.Error(), words) {
		fail("got the error %v, expected one that says %q", err, words)
	}
}
