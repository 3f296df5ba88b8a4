//go:build unix

package main

import (
	"testing"

	"snugly.dev/go/benchmark/internal/comparison"
)

func TestAPartThatThereIsNotIsAnError(t *testing.T) {
	records := 1
	if err := run(allParts(&records), []string{"record", "nonsense"}, comparison.Settings{Rounds: 1}); err == nil {
		t.Error("it was measured")
	}
}
