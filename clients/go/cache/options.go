package cache

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"snugly.dev/go/envelope"
)

// Goal says what Auto makes the best of: the cost of a saved byte. The names are those of the server.
type Goal string

const (
	// Memory saves bytes at almost any price: up to 500 ns for each.
	Memory Goal = "memory"
	// Balanced spends up to 20 ns on a saved byte.
	Balanced Goal = "balanced"
	// Speed spends up to 5 ns on a saved byte.
	Speed Goal = "speed"
)

// prices has what a saved byte may cost under each goal, in nanoseconds.
var prices = map[Goal]float64{Memory: 500, Balanced: 20, Speed: 5}

const (
	// DefaultMaxReplyBytes is that of Options.MaxReplyBytes.
	DefaultMaxReplyBytes = 1 << 30
	// Unlimited is for entries that may be restored to any number of bytes.
	Unlimited = -1
	// DefaultJitter is that of Options.Jitter.
	DefaultJitter = 0.1
	// NoJitter is for entries that live exactly as long as Options.TTL says.
	NoJitter = -1.0
	// DefaultLoadTimeout is that of Options.LoadTimeout.
	DefaultLoadTimeout = 30 * time.Second
	// DefaultBackendTimeout is that of Options.BackendTimeout.
	DefaultBackendTimeout = time.Second
	// DefaultRetryAfter is that of Options.RetryAfter.
	DefaultRetryAfter = time.Second
	// DefaultMaxRevalidations is that of Options.MaxRevalidations.
	DefaultMaxRevalidations = 16
)

// Options are those of a cache. TTL must be given; zero is the default of all others.
type Options struct {
	// Prefix comes before each key, as in user: for the entries user:123. Default: nothing.
	Prefix string
	// Version comes before the prefix, as in v2:user:123, if it is not 0. Processes with another version neither see
	// nor change these entries: raise it when entries of the old type must not be read as the new one.
	Version int
	// OldVersions are those that other processes still use while a new one is rolled out. Set, in one more round trip,
	// and Delete remove their entries too, so that they do not serve what has changed. 0 is for entries without a
	// version.
	OldVersions []int

	// Codec writes entries. Default: Auto.
	Codec Codec
	// Goal is that of Auto. Default: Balanced.
	Goal Goal
	// PlainJSON makes the cache begin with WritePlainJSON(true).
	PlainJSON bool
	// Envelope compresses for JSONZstd and MsgpZstd, and reads for all. Default: one with the default options of
	// package envelope, which is zstd at level 3 for values from 64 bytes on, and envelope.Wrap.
	Envelope *envelope.Codec

	// OnUndecodable says what readers get for an entry that cannot be read: envelope.Miss (default), which is ErrMiss,
	// while OnError is told why, or envelope.Raise, a *DecodeError.
	OnUndecodable envelope.OnUndecodable

	// MaxReplyBytes is the most that the entries of one GetMany are restored to together, in bytes, and an entry that is
	// read alone. What goes beyond cannot be read. A client that restores entries itself has a limit of its own. Default
	// DefaultMaxReplyBytes, or Unlimited.
	MaxReplyBytes int

	// TTL is the time for which an entry is fresh, at least a millisecond, or NoExpiry.
	TTL time.Duration
	// Jitter is the share of TTL by which each entry lives shorter, at random up to it, so that what was stored
	// together does not expire together: from 0 to 1, default DefaultJitter, or NoJitter.
	Jitter float64
	// Stale is the time for which GetOrLoad serves an entry longer while it loads a new one in the background. Default:
	// not at all.
	Stale time.Duration
	// NegativeTTL is the time for which the cache knows that something does not exist, with the same jitter. Default:
	// not at all.
	NegativeTTL time.Duration

	// LoadTimeout is the time that a loader has: its context ends then. Default: DefaultLoadTimeout.
	LoadTimeout time.Duration
	// BackendTimeout is the time that GetOrLoad lets the backend look for an entry before the value is loaded, and
	// store the value then, for which no caller waits: the contexts end then. A client that does not look at its
	// context, as go-redis without ContextTimeoutEnabled while it reads, takes timeouts of its own. Default:
	// DefaultBackendTimeout.
	BackendTimeout time.Duration
	// RetryAfter is the time for which an entry is left alone that could not be loaded anew in the background. Default:
	// DefaultRetryAfter.
	RetryAfter time.Duration
	// MaxRevalidations is the most entries that are loaded in the background at a time; further ones are left to later
	// readers. Default: DefaultMaxRevalidations.
	MaxRevalidations int
	// OnError gets the errors that nobody else gets: a backend or an entry that failed when a value was loaded instead,
	// a value that could not be stored, a load in the background that failed. It is called by the goroutine that met
	// the error, so it must be quick and for any number of goroutines. Default: they are only counted.
	OnError func(key string, err error)
}

// withDefaults fills in what is not given. It returns an *OptionError for what cannot be.
func (o Options) withDefaults() (Options, error) {
	o.Goal = cmp.Or(o.Goal, Balanced)
	o.OnUndecodable = cmp.Or(o.OnUndecodable, envelope.Miss)
	o.MaxReplyBytes = cmp.Or(o.MaxReplyBytes, DefaultMaxReplyBytes)
	o.Jitter = cmp.Or(o.Jitter, DefaultJitter)
	o.LoadTimeout = cmp.Or(o.LoadTimeout, DefaultLoadTimeout)
	o.BackendTimeout = cmp.Or(o.BackendTimeout, DefaultBackendTimeout)
	o.RetryAfter = cmp.Or(o.RetryAfter, DefaultRetryAfter)
	o.MaxRevalidations = cmp.Or(o.MaxRevalidations, DefaultMaxRevalidations)
	if o.Jitter == NoJitter {
		o.Jitter = 0
	}
	if o.OnError == nil {
		o.OnError = func(string, error) {}
	}
	o.OldVersions = slices.Clone(o.OldVersions)
	for _, rule := range []struct {
		option  string
		value   any
		holds   bool
		allowed string
	}{
		{"Version", o.Version, o.Version >= 0, "it is a number from 0"},
		{"OldVersions", o.OldVersions, !slices.Contains(o.OldVersions, o.Version), "the cache's own version is none of them"},
		{"OldVersions", o.OldVersions, len(o.OldVersions) == 0 || slices.Min(o.OldVersions) >= 0, "they are numbers from 0"},
		{"Codec", o.Codec, int(o.Codec) < len(codecs), codecsAllowed},
		{"Goal", fmt.Sprintf("%q", o.Goal), prices[o.Goal] > 0, "choose memory, balanced or speed"},
		{
			"OnUndecodable", fmt.Sprintf("%q", o.OnUndecodable), o.OnUndecodable == envelope.Miss || o.OnUndecodable == envelope.Raise,
			"choose miss or raise",
		},
		{"MaxReplyBytes", o.MaxReplyBytes, o.MaxReplyBytes > 0 || o.MaxReplyBytes == Unlimited, "it is a number of bytes from 1, or Unlimited"},
		{"TTL", o.TTL, isTTL(o.TTL), ttlAllowed},
		{"Jitter", o.Jitter, o.Jitter >= 0 && o.Jitter <= 1, "it is a share from 0 to 1, or NoJitter"},
		{"Stale", o.Stale, o.Stale >= 0, "it is not negative"},
		{"Stale", o.Stale, o.Stale == 0 || o.TTL != NoExpiry, "without TTL nothing becomes stale"},
		{"NegativeTTL", o.NegativeTTL, o.NegativeTTL == 0 || o.NegativeTTL >= time.Millisecond, "it is at least a millisecond, or 0"},
		{"LoadTimeout", o.LoadTimeout, o.LoadTimeout > 0, "it is positive"},
		{"BackendTimeout", o.BackendTimeout, o.BackendTimeout > 0, "it is positive"},
		{"RetryAfter", o.RetryAfter, o.RetryAfter > 0, "it is positive"},
		{"MaxRevalidations", o.MaxRevalidations, o.MaxRevalidations > 0, "it is at least 1"},
	} {
		if !rule.holds {
			return o, &OptionError{Option: rule.option, Value: rule.value, Allowed: rule.allowed}
		}
	}
	if o.Envelope == nil {
		standard, err := envelope.New(envelope.Options{ExistingEnvelopes: envelope.Wrap})
		if err != nil {
			return o, err
		}
		o.Envelope = standard
	}
	return o, nil
}

// budget is the memory for what comes with one reply.
func (o *Options) budget() envelope.Budget {
	if o.MaxReplyBytes == Unlimited {
		return envelope.Unlimited()
	}
	return envelope.Budget{Left: o.MaxReplyBytes}
}

const ttlAllowed = "it is at least a millisecond, or NoExpiry"

func isTTL(ttl time.Duration) bool { return ttl >= time.Millisecond || ttl == NoExpiry }
