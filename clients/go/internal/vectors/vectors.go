// Package vectors reads the test vectors of the specification (spec/vectors) for the tests of this module.
//
// It knows how the files write bytes down, and nothing of what they are about.
package vectors

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Path is that of a file in the folder spec of the repository.
func Path(name string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../../../../spec", name)
}

// Read decodes a file of the folder spec into what target points to.
func Read(t testing.TB, name string, target any) {
	t.Helper()
	content, err := os.ReadFile(Path(name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, target); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Bytes are bytes as the vectors write them down: in place, or by a rule where they would be long.
type Bytes []byte

// UnmarshalJSON expands what was written down.
func (b *Bytes) UnmarshalJSON(content []byte) error {
	var rule struct {
		Text, Hex, Count *string
		Repeat           *Bytes
		Noise            *uint64
		Join             []Bytes
		Size             int
	}
	if err := json.Unmarshal(content, &rule); err != nil {
		return err
	}
	made := []byte{}
	switch {
	case rule.Text != nil:
		made = append(made, *rule.Text...)
	case rule.Hex != nil:
		var err error
		if made, err = hex.DecodeString(*rule.Hex); err != nil {
			return err
		}
	case rule.Repeat != nil:
		for len(made) < rule.Size {
			made = append(made, *rule.Repeat...)
		}
		made = made[:rule.Size]
	case rule.Count != nil:
		for number := 0; len(made) < rule.Size; number++ {
			made = append(made, strings.ReplaceAll(*rule.Count, "#", strconv.Itoa(number))...)
		}
		made = made[:rule.Size]
	case rule.Noise != nil:
		made = Noise(*rule.Noise, rule.Size)
	case rule.Join != nil:
		for _, part := range rule.Join {
			made = append(made, part...)
		}
	default:
		return fmt.Errorf("no rule for bytes: %s", content)
	}
	*b = made
	return nil
}

// Noise is the top bytes of a 64-bit linear congruential generator with Knuth's MMIX constants, which starts at seed.
func Noise(seed uint64, size int) []byte {
	made := make([]byte, size)
	for at := range made {
		seed = seed*6364136223846793005 + 1442695040888963407
		made[at] = byte(seed >> 56)
	}
	return made
}
