//go:build unix

// Command benchmark measures what the Go module costs and saves, and prints tables:
//
//   - pages: a page of 1,000 records at one key of the cache, under each codec, beside what was published;
//   - record: one record, marshaled and unmarshaled without a cache;
//   - records: records one by one, with zstd, and with a trained dictionary under zstd and LZ4;
//   - hook: SET and GET with a client of go-redis that has the hook, by those without it in the same run, and the processor
//     time that the client takes for one; with a dictionary, too, where snugly is there to train one.
//
// For example:
//
//	go run ./benchmark [-only pages,hook] [-rounds 7] [-seconds 1] [-records 1000] [-bytes 1440] [-address localhost:6379]
//
// Without an address it starts the valkey-server that SNUGLY_VALKEY_SERVER names.
//
// Each round measures every way of the hook for so many seconds, in another order; the ratio is the median of those of the
// rounds. Codecs have three times as many rounds, each a 25th as long. The server's keys beginning with benchmark: are
// overwritten.
package main

import (
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"

	"snugly.dev/go/benchmark/internal/codecs"
	"snugly.dev/go/benchmark/internal/comparison"
)

// part is something that is measured.
type part struct {
	name    string
	measure func(comparison.Settings) error
}

func main() {
	records := flag.Int("records", 1_000, "how many records are measured one by one")
	parts := allParts(records)
	only := flag.String("only", names(parts), "the parts that are measured")
	flags := comparison.NewFlags()
	flag.Parse()
	if *records < 1 {
		log.Fatal("-records must be at least 1")
	}
	if err := flags.Run(func(settings comparison.Settings) error { return run(parts, strings.Split(*only, ","), settings) }); err != nil {
		log.Fatal(err)
	}
}

// Codecs wait for no server: for each round of clients they have three, of which each takes a 25th of the time.
const (
	roundsOfCodecs = 3
	roundOfCodecs  = 25
)

func allParts(records *int) (parts []part) {
	for _, each := range codecs.Parts {
		parts = append(parts, part{each.Name, func(settings comparison.Settings) error {
			return each.Measure(codecs.Settings{
				Rounds: roundsOfCodecs * settings.Rounds, Round: settings.Round / roundOfCodecs, Records: *records,
			})
		}})
	}
	return append(parts, part{"hook", func(settings comparison.Settings) error {
		fmt.Println()
		return comparison.Run(settings, []comparison.Ratio{comparison.OfBare}, comparison.GoRedis, comparison.GoRedisWithDictionary)
	}})
}

// run measures the parts of these names.
func run(parts []part, chosen []string, settings comparison.Settings) error {
	for _, name := range chosen {
		if !slices.ContainsFunc(parts, func(part part) bool { return part.name == name }) {
			return fmt.Errorf("there is no part %q; there are %s", name, names(parts))
		}
	}
	for _, part := range parts {
		if !slices.Contains(chosen, part.name) {
			continue
		}
		if err := part.measure(settings); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func names(parts []part) string {
	var all []string
	for _, part := range parts {
		all = append(all, part.name)
	}
	return strings.Join(all, ",")
}
