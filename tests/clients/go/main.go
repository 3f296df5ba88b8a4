// Connects to a server with the Go clients as they come, and prints one line of JSON for each check.
//
//	clients HOST PORT PORT-WITH-PASSWORD
//	clients memcached HOST PORT
//
// ../README.md says what every such program takes, prints and checks.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	wrongUsage = 2
	// How long one client may take for everything; a hang then becomes errors that say where.
	patience = time.Minute
)

// line is what is printed for a check.
type line struct {
	Client string `json:"client"`
	// The version of RESP, or a word for one of memcached's protocols.
	Protocol any    `json:"protocol"`
	Check    string `json:"check"`
	OK       bool   `json:"ok"`
	Detail   string `json:"detail"`
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: clients HOST PORT PORT-WITH-PASSWORD, or clients memcached HOST PORT")
		os.Exit(wrongUsage)
	}

	output := json.NewEncoder(os.Stdout)
	failed := false
	report := func(result line) {
		failed = failed || !result.OK
		if err := output.Encode(result); err != nil {
			panic(err)
		}
	}
	if os.Args[1] == "memcached" {
		tryMemcached(net.JoinHostPort(os.Args[2], os.Args[3]), report)
	} else {
		tryLibraries(net.JoinHostPort(os.Args[1], os.Args[2]), net.JoinHostPort(os.Args[1], os.Args[3]), report)
	}
	if failed {
		os.Exit(1)
	}
}

// tryLibraries tries each client of RESP in each version.
func tryLibraries(open, locked string, report func(line)) {
	for _, library := range libraries {
		for _, protocol := range []int{2, 3} {
			try(&run{library: library, protocol: protocol, address: open, locked: locked}, report)
		}
	}
}

// try makes every check of one library in one protocol.
func try(run *run, report func(line)) {
	var cancel context.CancelFunc
	run.Context, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer run.close()
	for _, check := range checks {
		detail := complaint(func() { check.run(run) })
		report(line{run.library.name, run.protocol, check.name, detail == "", detail})
	}
}
