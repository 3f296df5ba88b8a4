//go:build unix

package comparison

import (
	"errors"
	"flag"
	"os"
	"runtime/pprof"
	"time"
)

// Flags are those of a command that compares.
type Flags struct {
	address, way, profile *string
	rounds, bytes         *int
	seconds               *float64
}

// NewFlags adds flags to those of the command line, which is still to be parsed.
func NewFlags() Flags {
	return Flags{
		address: flag.String("address", "", "the server to measure with; one of its own without this"),
		way:     flag.String("way", "", `the one way that is measured, such as "go-redis lz4"`),
		profile: flag.String("cpuprofile", "", "where a profile of the processor's time is written"),
		rounds:  flag.Int("rounds", 7, "how many rounds there are"),
		bytes:   flag.Int("bytes", DefaultValueBytes, "about how long a value is"),
		seconds: flag.Float64("seconds", 1, "how long each way is measured in a round"),
	}
}

// Run runs what measures with these settings, and profiles it if that is wanted.
func (f Flags) Run(measure func(Settings) error) error {
	if *f.rounds < 1 {
		return errors.New("-rounds must be at least 1")
	}
	if *f.profile != "" {
		file, err := os.Create(*f.profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return measure(Settings{
		Rounds: *f.rounds, Round: time.Duration(*f.seconds * float64(time.Second)), Address: *f.address, ValueBytes: *f.bytes, Way: *f.way,
	})
}
