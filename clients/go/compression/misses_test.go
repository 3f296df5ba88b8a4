package compression

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"snugly.dev/go/envelope"
)

const damaged = "\x00\x01\x02\x00\x01damage"

// clock is a time that goes on as a test says.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func TestOfMissedValuesOneAMinuteIsLoggedWithTheNumberOfOthers(t *testing.T) {
	var logged bytes.Buffer
	compressor, err := New(nil, Options{OnUndecodable: envelope.Miss, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	of := clock{time.Unix(1_769_860_800, 0)}
	compressor.missed.now = of.read
	// read misses some values, and returns what was logged then.
	read := func(keys ...string) string {
		logged.Reset()
		reply := compressor.Reply(context.Background())
		for _, key := range keys {
			if _, err := reply.Restore(key, damaged); !errors.Is(err, ErrMiss) {
				t.Errorf("%s: %v", key, err)
			}
		}
		return logged.String()
	}
	expect := func(text, key string, others int) {
		t.Helper()
		for _, part := range []string{"level=WARN", "cannot decode an envelope", fmt.Sprintf(`at key \"%s\"`, key), fmt.Sprintf("(and %d others", others)} {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in %q", part, text)
			}
		}
		if strings.Count(text, "\n") != 1 {
			t.Errorf("%q was logged", text)
		}
	}
	expect(read("first", "second", "third"), "first", 0)
	of.now = of.now.Add(missedEvery - 1)
	if text := read("fourth"); text != "" {
		t.Errorf("%q was logged", text)
	}
	of.now = of.now.Add(1)
	expect(read("fifth", "sixth"), "fifth", 3)
	of.now = of.now.Add(time.Hour)
	expect(read("seventh"), "seventh", 1)
	if counted := compressor.Statistics().DecodeFailures; counted != 7 {
		t.Errorf("%d failures were counted", counted)
	}
}

func TestWhoGetsTheErrorNeedsNoWarning(t *testing.T) {
	for _, option := range []envelope.OnUndecodable{envelope.Raise, envelope.Raw} {
		var logged bytes.Buffer
		compressor, err := New(nil, Options{OnUndecodable: option, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		if err != nil {
			t.Fatal(err)
		}
		reply := compressor.Reply(context.Background())
		_, _ = reply.Restore("key", damaged)
		if logged.Len() > 0 || compressor.Statistics().DecodeFailures != 1 {
			t.Errorf("%s: %q was logged", option, &logged)
		}
	}
}
