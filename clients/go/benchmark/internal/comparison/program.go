//go:build unix

package comparison

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"snugly.dev/go/internal/servers"
)

// Settings is how much is measured, and with what.
type Settings struct {
	Rounds int
	// Round is how long each way is measured in a round.
	Round time.Duration
	// Address is that of the server to measure with; empty for one that is started.
	Address string
	// ValueBytes is about the length of a value.
	ValueBytes int
	// Way is the name of the one that is measured; empty for all.
	Way string
}

// Run compares the ways that are opened for the address in the settings, and prints a table.
func Run(settings Settings, ratios []Ratio, opened ...func(Settings) ([]Way, error)) error {
	if settings.Address == "" {
		started, stop, isHere := servers.ForExamples()
		if !isHere {
			return errors.New("there is no valkey-server: set SNUGLY_VALKEY_SERVER, or give an address")
		}
		defer stop()
		settings.Address = started
	}
	var ways []Way
	for _, open := range opened {
		more, err := open(settings)
		if err != nil {
			return err
		}
		for _, way := range more {
			defer way.Client.Close()
		}
		ways = append(ways, more...)
	}
	if settings.Way != "" {
		at := slices.IndexFunc(ways, func(way Way) bool { return way.String() == settings.Way })
		if at < 0 {
			return fmt.Errorf("there is no way %q; there are %v", settings.Way, names(ways))
		}
		ways = ways[at : at+1]
	}
	measurer := newMeasurer(settings)
	defer measurer.close()
	printHeading(ratios)
	for _, operation := range operations {
		for _, goroutines := range []int{1, 64} {
			results, err := measurer.measure(context.Background(), ways, operation, goroutines)
			if err != nil {
				return err
			}
			printRows(ways, results, ratios, operation, goroutines)
		}
	}
	return nil
}

func names(ways []Way) []string {
	var all []string
	for _, way := range ways {
		all = append(all, way.String())
	}
	return all
}
