package policy

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"snugly.dev/go/internal/vectors"
)

// symbols gives random bytes of so many values.
func symbols(count byte, size int, seed uint64) []byte {
	made := vectors.Noise(seed, size)
	for at := range made {
		made[at] %= count
	}
	return made
}

func TestRandomBytesOfAnyLengthLookEvenAndBase64DoesNot(t *testing.T) {
	for _, size := range []int{128, 200, 256, 1000, 4096, 65536} {
		seemEven := 0
		for seed := range uint64(200) {
			if spreadOf(vectors.Noise(seed, size)) == even {
				seemEven++
			}
			if spreadOf(symbols(64, size, seed)) == even {
				t.Errorf("%d bytes of base64 look even", size)
			}
			if spreadOf(symbols(16, size, seed)) != skewed {
				t.Errorf("%d bytes of hexadecimal do not look skewed", size)
			}
		}
		if seemEven < 198 {
			t.Errorf("%d of 200 random values of %d bytes look even", seemEven, size)
		}
	}
}

func TestJSONLooksSkewed(t *testing.T) {
	json := bytes.Repeat([]byte(`{"id":4711,"name":"amber basin","price":12.95,"tags":["cedar","delta"],"active":true},`), 50)
	for _, size := range []int{64, 100, 300, 900, 4000} {
		if got := spreadOf(json[:size]); got != skewed {
			t.Errorf("%d bytes look %d", size, got)
		}
	}
}

func TestAnyValueCanBeLookedAtAndTried(t *testing.T) {
	memory := new(Policy)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.Byte(), 0, 10_000).Draw(t, "value")
		if got := spreadOf(value); got >= spreads {
			t.Fatalf("%d bytes look %d", len(value), got)
		}
		attempt, _ := memory.Consider(value, rapid.Bool().Draw(t, "dictionary"))
		attempt.Report(rapid.Bool().Draw(t, "gained"))
	})
}
