package shims_test

import "time"

//go:generate go tool msgp -o newtime_gen_test.go -tests=false -io=false

//msgp:newtime

// Event has a time that keeps its nanoseconds.
type Event struct {
	At time.Time `msg:"at"`
}
