package servers

import (
	"fmt"
	"os"
	"testing"
)

// ForExamples starts a valkey-server for examples, which have no test that could end it: stop does. isHere is false where
// there is none.
func ForExamples() (address string, stop func(), isHere bool) {
	main := &outside{}
	defer func() {
		if recover() == errSkipped {
			main.end()
			address, stop, isHere = "", nil, false
		}
	}()
	address = Valkey(main)
	return address, main.end, true
}

// outside stands for a test where there is none, in TestMain.
type outside struct {
	testing.TB
	atEnd []func()
}

var errSkipped = fmt.Errorf("skipped")

func (o *outside) end() {
	for at := len(o.atEnd) - 1; at >= 0; at-- {
		o.atEnd[at]()
	}
}

// Helper has nothing to mark.
func (o *outside) Helper() {}

// Cleanup notes what end is to do.
func (o *outside) Cleanup(end func()) { o.atEnd = append(o.atEnd, end) }

// Skipf ends ForExamples.
func (o *outside) Skipf(string, ...any) { panic(errSkipped) }

// Fatal ends the program.
func (o *outside) Fatal(arguments ...any) { panic(fmt.Sprint(arguments...)) }

// Fatalf ends the program.
func (o *outside) Fatalf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }

// Logf tells nobody.
func (o *outside) Logf(string, ...any) {}

// TempDir is a folder that end removes.
func (o *outside) TempDir() string {
	folder, err := os.MkdirTemp("", "snugly-examples")
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
