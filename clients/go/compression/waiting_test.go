package compression_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snugly.dev/go/catalogue"
	"snugly.dev/go/compression"
	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// silent is a server that answers nothing, and whose client waits only so long for a reply.
type silent struct{ sent *atomic.Int64 }

func (s silent) Send(ctx context.Context, _ [][]string) ([]any, error) {
	s.sent.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s silent) Aside() (catalogue.Server, func()) { return s, func() {} }

func (silent) ReplyTimeout() time.Duration { return 20 * time.Millisecond }

// withDictionaries is a value in envelopes that need a dictionary each.
func withDictionaries(t *testing.T) (stored []string) {
	t.Helper()
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	for _, each := range read.Dictionaries {
		dictionary, err := envelope.LoadDictionary(each.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		codec, err := envelope.New(envelope.Options{Dictionaries: envelope.Only(dictionary)})
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, string(codec.Encode(nil, []byte(strings.Repeat("hello ", 200)))))
	}
	if len(stored) < 2 {
		t.Fatalf("there are %d dictionaries", len(stored))
	}
	return stored
}

// A round is two hours here: without the timeout of the client nobody would see the end of waiting.
func TestDictionariesAreWaitedForNoLongerThanTheClientWaitsForAReply(t *testing.T) {
	stored := withDictionaries(t)
	for name, gathers := range map[string]bool{"all values of a reply together": true, "one after the other": false} {
		t.Run(name, func(t *testing.T) {
			server := silent{new(atomic.Int64)}
			compressor, err := compression.New(server, compression.Options{DictionaryRefresh: 24 * time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(compressor.Close)
			reply := compressor.Reply(context.Background())
			if gathers {
				reply.Gather(func(yield func(string) bool) {
					for _, each := range stored {
						if !yield(each) {
							return
						}
					}
				})
			}
			for range 100 {
				for _, each := range stored {
					_, err := reply.Restore("user:1", each)
					undecodable := (*envelope.UndecodableError)(nil)
					if !errors.As(err, &undecodable) || undecodable.Kind != envelope.DictionaryMissing || !strings.Contains(err.Error(), "the 20ms are over in which the client wants a reply") {
						t.Fatalf("got %v", err)
					}
				}
			}
			// What comes after the time is over asks for nothing.
			if sent := server.sent.Load(); sent > 1 {
				t.Errorf("%d requests were sent", sent)
			}
		})
	}
}

func TestAMissIsOneAlsoWhereADictionaryDidNotComeInTime(t *testing.T) {
	compressor, err := compression.New(silent{new(atomic.Int64)}, compression.Options{DictionaryRefresh: 24 * time.Hour, OnUndecodable: envelope.Miss})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(compressor.Close)
	reply := compressor.Reply(context.Background())
	if _, err := reply.Restore("user:1", withDictionaries(t)[0]); !errors.Is(err, compression.ErrMiss) {
		t.Errorf("got %v", err)
	}
}

func TestWhoeverLeavesWaitsForNoDictionary(t *testing.T) {
	compressor, err := compression.New(silent{new(atomic.Int64)}, compression.Options{DictionaryRefresh: 24 * time.Hour, OnUndecodable: envelope.Miss})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(compressor.Close)
	leaving, leave := context.WithCancel(context.Background())
	leave()
	reply := compressor.Reply(leaving)
	if _, err := reply.Restore("user:1", withDictionaries(t)[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
