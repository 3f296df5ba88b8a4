package shims_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"snugly.dev/go/cache/shims"
)

// Decimals are stored as text: exactly.
func Example_decimal() {
	order := Order{Total: decimal.RequireFromString("19.90"), Parts: []decimal.Decimal{decimal.New(1, -20)}}
	fmt.Println(copied(order).Total, copied(order).Parts[0])
	// Output: 19.9 0.00000000000000000001
}

// UUIDs are stored as their 16 bytes.
func Example_uuid() {
	order := Order{ID: uuid.MustParse("1c7a2d0e-0b7f-4a55-9d7c-53d4ac2ee101")}
	fmt.Println(copied(order).ID)
	// Output: 1c7a2d0e-0b7f-4a55-9d7c-53d4ac2ee101
}

// Times are stored as milliseconds since 1970, and come back in UTC.
func Example_time() {
	sent := time.Date(2026, 11, 22, 10, 45, 0, 123_456_789, time.FixedZone("CET", 3600))
	order := Order{Sent: &sent}
	fmt.Println(copied(order).Sent.Format(time.RFC3339Nano), copied(order).Made.IsZero())
	// Output: 2026-11-22T09:45:00.123Z true
}

// With the directive newtime, times are stored as the specification of MessagePack has it.
func Example_newtime() {
	event := Event{At: time.Date(2026, 11, 22, 10, 45, 0, 123_456_789, time.UTC)}
	stored, _ := event.MarshalMsg(nil)
	var read Event
	_, err := read.UnmarshalMsg(stored)
	fmt.Println(read.At.UTC(), err)
	// Output: 2026-11-22 10:45:00.123456789 +0000 UTC <nil>
}

// copied is what comes back from MessagePack.
func copied(order Order) (read Order) {
	stored, err := order.MarshalMsg(nil)
	if err == nil {
		_, err = read.UnmarshalMsg(stored)
	}
	if err != nil {
		panic(err)
	}
	return read
}

func TestTimesComeBackToTheMillisecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
		back := shims.MillisToTime(shims.TimeToMillis(at))
		if lost := at.Sub(back); lost < 0 || lost >= time.Millisecond {
			t.Fatalf("%v became %v", at, back)
		}
	})
}
