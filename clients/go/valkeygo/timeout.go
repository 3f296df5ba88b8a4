package valkeygo

import (
	"reflect"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
)

// replyTimeout is the time that a client lets the server take for a reply: its ConnWriteTimeout. valkey-go tells it nobody,
// so it is looked for by names; it is 0 where it is not there, as in a client of an application's own.
func replyTimeout(client valkey.Client) time.Duration {
	made := reflect.ValueOf(client)
	for _, options := range []string{"opt", "mOpt"} {
		// Clients of a cluster and of servers that stand alone have the one, those of a Sentinel the other.
		if timeout := within(made, options, "ConnWriteTimeout"); timeout.IsValid() {
			return durationOf(timeout)
		}
	}
	// That of one server has connections that know it.
	wires := within(made, "conn", "muxwires")
	if !wires.IsValid() || wires.Kind() != reflect.Slice || wires.Len() == 0 {
		return 0
	}
	wire := within(wires.Index(0), "wire")
	if !wire.IsValid() || wire.Type() != reflect.TypeFor[atomic.Value]() || !wire.CanAddr() {
		return 0
	}
	connection := (*atomic.Value)(wire.Addr().UnsafePointer()).Load()
	return durationOf(within(reflect.ValueOf(connection), "timeout"))
}

// within is the field of a field, and so on, of what a value points to; invalid if it is not there.
func within(value reflect.Value, names ...string) reflect.Value {
	for _, name := range names {
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		field, isThere := value.Type().FieldByName(name)
		if !isThere || len(field.Index) > 1 {
			return reflect.Value{}
		}
		value = value.FieldByIndex(field.Index)
	}
	return value
}

func durationOf(value reflect.Value) time.Duration {
	if !value.IsValid() || value.Type() != reflect.TypeFor[time.Duration]() {
		return 0
	}
	return max(time.Duration(value.Int()), 0)
}
