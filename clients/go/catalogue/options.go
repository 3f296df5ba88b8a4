package catalogue

import (
	"fmt"
	"log/slog"
	"time"

	"snugly.dev/go/envelope"
)

const (
	// DefaultPrefix is that of Options.Prefix.
	DefaultPrefix = "{snugly}"
	// DefaultRefresh is that of Options.Refresh.
	DefaultRefresh = time.Minute

	leastRefresh = 100 * time.Millisecond
	mostRefresh  = 24 * time.Hour
)

// Options are those of the dictionaries of a client. The zero value reads with dictionaries, and writes without.
type Options struct {
	// IsUsed says that values are written with the dictionaries that the catalogue has for their keys.
	IsUsed bool
	// Given is the dictionary that all values are written with, whatever their keys. It is put beside the data, and used
	// while it is there.
	Given *envelope.Dictionary
	// Prefix is the beginning of the keys of dictionaries. Default "{snugly}", whose hash tag keeps them in one slot.
	Prefix string
	// Refresh is the time between two readings of the catalogue, for which a new dictionary is not used: from 100 ms to 24
	// hours, the same for all of a fleet. Default a minute.
	Refresh time.Duration
	// Folder is the folder of the copies of fetched dictionaries. Default: there are none.
	Folder string
	// Exclude are globs of keys, as those of KEYS, whose values are written without a dictionary.
	Exclude []string
	// Logger gets warnings, each once. Default slog.Default().
	Logger *slog.Logger
}

// withDefaults fills in what is not given. It returns an *envelope.OptionError for what cannot be.
func (o Options) withDefaults() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Refresh == 0 {
		o.Refresh = DefaultRefresh
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Refresh < leastRefresh || o.Refresh > mostRefresh {
		return o, &envelope.OptionError{
			Option: "DictionaryRefresh", Value: o.Refresh, Allowed: fmt.Sprintf("it is a duration from %v to %v", leastRefresh, mostRefresh),
		}
	}
	if o.IsUsed && o.Given != nil {
		return o, &envelope.OptionError{
			Option: "Dictionary", Value: o.Given.ID(), Allowed: "give one dictionary, or use those of the catalogue",
		}
	}
	return o, nil
}
