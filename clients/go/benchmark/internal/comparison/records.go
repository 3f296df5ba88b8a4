//go:build unix

package comparison

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
)

// values is how many values and keys there are.
const values = 256

// DefaultValueBytes is that of Settings.ValueBytes.
const DefaultValueBytes = 1440

// itemBytes is about how long an item of a record is, with what follows the items.
const itemBytes = 130

var keys = sync.OnceValue(func() []string {
	made := make([]string, values)
	for number := range made {
		made[number] = fmt.Sprintf("benchmark:%d", number)
	}
	return made
})

func key(number int) string { return keys()[number] }

// records are JSON as applications cache it: the same fields in all of them, with other words and numbers. Each is of about
// as many bytes.
func records(seed uint64, count, valueBytes int) []string {
	random := rand.New(rand.NewPCG(seed, 2))
	syllables := strings.Fields("an ber con del en fra gor hal in jo ka lum mar nor ost per qui ras sol ter un vel wi xa yon zel")
	word := func() string {
		made := ""
		for range 1 + random.IntN(4) {
			made += syllables[random.IntN(len(syllables))]
		}
		return made
	}
	made := make([]string, count)
	for number := range made {
		var record strings.Builder
		fmt.Fprintf(&record, `{"id":%d,"created_at":"2026-%02d-%02dT%02d:%02d:00Z","customer":{"name":"%s %s","email":"%s@%s.example"},"items":[`,
			random.IntN(1e9), 1+random.IntN(12), 1+random.IntN(28), random.IntN(24), random.IntN(60), word(), word(), word(), word())
		for record.Len() < valueBytes-itemBytes {
			fmt.Fprintf(&record, `{"sku":"%08x","title":"%s %s %s","quantity":%d,"price":%d.%02d,"currency":"EUR"},`,
				random.Uint32(), word(), word(), word(), 1+random.IntN(9), random.IntN(500), random.IntN(100))
		}
		fmt.Fprintf(&record, `null],"status":"%s","total":%d}`, word(), random.IntN(100_000))
		made[number] = record.String()
	}
	return made
}
