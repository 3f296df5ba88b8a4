//go:build unix

package comparison

import (
	"context"
	"strings"
	"testing"
	"time"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/servers"
	"snugly.dev/go/internal/vectors"
)

// altered gives something else than what was stored.
type altered struct{ Client }

func (a altered) Get(ctx context.Context, key string) (string, error) {
	value, err := a.Client.Get(ctx, key)
	return strings.ToUpper(value), err
}

// dictionary is one of the specification's.
func dictionary(t *testing.T) *envelope.Dictionary {
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	loaded, err := envelope.LoadDictionary(read.Dictionaries["profiles"].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func open(t *testing.T) (*measurer, []Way) {
	t.Helper()
	settings := Settings{Rounds: 2, Round: time.Millisecond, Address: servers.Valkey(t), ValueBytes: DefaultValueBytes}
	ways, err := GoRedis(settings)
	if err != nil {
		t.Fatal(err)
	}
	withDictionary, err := goRedisWith(settings.Address, dictionary(t))
	if err != nil {
		t.Fatal(err)
	}
	ways = append(ways, withDictionary...)
	for _, way := range ways {
		t.Cleanup(way.Client.Close)
	}
	made := newMeasurer(settings)
	t.Cleanup(made.close)
	return made, ways
}

func TestEveryWayIsMeasuredInEveryRound(t *testing.T) {
	measurer, ways := open(t)
	for _, operation := range operations {
		results, err := measurer.measure(context.Background(), ways, operation, 3)
		if err != nil {
			t.Fatal(err)
		}
		for at, result := range results {
			if len(result.rates) != 2 || len(result.costs) != 2 || min(result.rates[0], result.rates[1]) <= 0 {
				t.Errorf("%v: %+v", ways[at], result)
			}
			isSmaller := result.stored < results[0].stored
			if isCompressed := ways[at].Compression != Bare && ways[at].Compression != "off"; isSmaller != isCompressed {
				t.Errorf("%v: %.0f bytes are stored, and %.0f without", ways[at], result.stored, results[0].stored)
			}
		}
	}
}

func TestAValueThatIsReadWrongEndsTheMeasurement(t *testing.T) {
	measurer, ways := open(t)
	ways[1].Client = altered{ways[1].Client}
	_, err := measurer.measure(context.Background(), ways, operations[0], 1)
	if err == nil || !strings.Contains(err.Error(), "go-redis off, SET: benchmark:0: ") {
		t.Error(err)
	}
}

func TestAnErrorOfOneGoroutineEndsTheMeasurement(t *testing.T) {
	measurer, ways := open(t)
	failing := operation{"GET", func(ctx context.Context, client Client, key, _ string) error {
		_, err := client.Get(ctx, key+":missing")
		return err
	}}
	if _, err := measurer.measure(context.Background(), ways, failing, 2); err == nil {
		t.Error("errors of operations are not reported")
	}
}

func TestARatioIsTheMedianOfThoseOfTheRounds(t *testing.T) {
	ways := []Way{{Name: Name{"a", Bare}}, {Name: Name{"a", "lz4"}}, {Name: Name{"b", "lz4"}}}
	results := []result{{rates: []float64{10, 20, 40}}, {rates: []float64{5, 5, 20}}, {rates: []float64{1, 1, 1}}}
	for at, want := range []string{"", "0.500", ""} {
		if got := OfBare.cell(at, ways, results); got != want {
			t.Errorf("%v: %q, not %q", ways[at], got, want)
		}
	}
}
