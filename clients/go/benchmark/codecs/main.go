// Command codecs measures what the codecs of package cache cost and save, beside what was published of them, and prints
// tables.
//
//	go run ./benchmark/codecs [-quick] [-only pages,record,records]
//
// Candidates run in turns, and the median of the rounds counts. For dictionaries it needs valkey-server and snugly
// (SNUGLY_VALKEY_SERVER, SNUGLY_BIN), and does without where they are not there.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// parts has a row for each thing that is measured.
var parts = []struct {
	name    string
	measure func(settings) error
}{
	{"pages", pages},
	{"record", record},
	{"records", records},
}

// settings is how much is measured.
type settings struct {
	rounds int
	// round is how long each candidate runs in a round.
	round time.Duration
	// records is how many records are measured one by one, and trained how many others a dictionary is trained from.
	records, trained int
}

func main() {
	var names []string
	for _, part := range parts {
		names = append(names, part.name)
	}
	quick := flag.Bool("quick", false, "only show that everything runs")
	only := flag.String("only", strings.Join(names, ","), "the parts to measure")
	flag.Parse()
	how := settings{rounds: 21, round: 40 * time.Millisecond, records: 1_000, trained: 5_000}
	if *quick {
		how = settings{rounds: 1, round: time.Millisecond, records: 50, trained: 500}
	}
	if err := run(how, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(how settings, names []string) error {
	chosen := map[string]bool{}
	for _, name := range names {
		chosen[name] = true
	}
	for _, part := range parts {
		if !chosen[part.name] {
			continue
		}
		delete(chosen, part.name)
		if err := part.measure(how); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	for name := range chosen {
		return fmt.Errorf("there is no part %q", name)
	}
	return nil
}
