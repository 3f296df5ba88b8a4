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

	// roundsPerRefresh is how often what is in use is looked after, for each time that the catalogue is read.
	roundsPerRefresh = 12
)

// Options is which dictionaries are used, and how they are kept. The zero value reads with dictionaries, and writes
// without.
type Options struct {
	// IsUsed says that values are written with the dictionaries that the catalogue has for their keys.
	IsUsed bool
	// Given is the dictionary that all values are written with, whatever their keys. It is put beside the data, and used
	// while it is there.
	Given *envelope.Dictionary
	// Prefix is what the keys of dictionaries begin with. Default "{snugly}", whose hash tag keeps them in one slot.
	Prefix string
	// Refresh is how often the catalogue is read, and how long a new dictionary is not used: from 100 ms to 24 hours, the
	// same for all of a fleet. Default a minute.
	Refresh time.Duration
	// Folder is where copies of fetched dictionaries are kept. Default: nowhere.
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

func (o *Options) writes() bool { return o.IsUsed || o.Given != nil }

func (o *Options) round() time.Duration { return o.Refresh / roundsPerRefresh }

func (o *Options) catalogueKey() string { return o.Prefix + ":dicts" }

func (o *Options) dictionaryKey(id uint32) string { return fmt.Sprintf("%s:dict:%d", o.Prefix, id) }
