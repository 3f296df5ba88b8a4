//go:build unix

package comparison

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"snugly.dev/go/internal/servers"
)

// Run is a program that compares the ways that open gives for the address of a server, and prints a table. It reads the
// flags of the command line, and starts a server where they name none.
func Run(open func(address string) ([]Way, error), ratios ...Ratio) error {
	address := flag.String("address", "", "the server to measure with; one of its own without this")
	seconds := flag.Float64("seconds", 1, "how long each way is measured in a round")
	rounds := flag.Int("rounds", 7, "how many rounds there are")
	profile := flag.String("cpuprofile", "", "where a profile of the processor's time is written")
	only := flag.String("only", "", `the one way that is measured, such as "go-redis lz4"`)
	flag.Parse()
	if *rounds < 1 {
		return errors.New("-rounds must be at least 1")
	}
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if *address == "" {
		started, stop, isHere := servers.ForExamples()
		if !isHere {
			return errors.New("there is no valkey-server: set SNUGLY_VALKEY_SERVER, or give an address")
		}
		defer stop()
		*address = started
	}
	ways, err := open(*address)
	if err != nil {
		return err
	}
	for _, way := range ways {
		defer way.Client.Close()
	}
	if *only != "" {
		at := slices.IndexFunc(ways, func(way Way) bool { return way.String() == *only })
		if at < 0 {
			return fmt.Errorf("there is no way %q; there are %v", *only, names(ways))
		}
		ways = ways[at : at+1]
	}
	measurer := newMeasurer(*address, *rounds, time.Duration(*seconds*float64(time.Second)))
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
