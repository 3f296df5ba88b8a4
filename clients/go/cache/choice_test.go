package cache

import (
	"math"
	"reflect"
	"testing"
	"time"

	"snugly.dev/go/benchmark/layout"
	"snugly.dev/go/envelope"
)

// told is a choice that was told the costs of so many values.
func told(values int, costs map[Codec]float64) *choice {
	choice := newChoice(Balanced, true)
	tell(choice, values, costs)
	return choice
}

func tell(choice *choice, values int, costs map[Codec]float64) {
	for range values {
		row := new([len(codecs)]float64)
		for codec, cost := range costs {
			row[codec] = cost
		}
		choice.mu.Lock()
		choice.measured(row)
	}
}

func TestAutoTakesTheCodecThatCostsTheLeast(t *testing.T) {
	for _, best := range []Codec{JSON, Msgp, JSONZstd, MsgpZstd} {
		costs := map[Codec]float64{JSON: 100, Msgp: 100, JSONZstd: 100, MsgpZstd: 100}
		costs[best] = 50
		if got := told(1, costs).now(); got != best {
			t.Errorf("%v was chosen, not %v", got, best)
		}
	}
}

func TestAutoStaysWithACodecThatIsHardlyWorseAndFollowsTheData(t *testing.T) {
	choice := told(10, map[Codec]float64{JSON: 100, Msgp: 100, JSONZstd: 90, MsgpZstd: 100})
	tell(choice, 1000, map[Codec]float64{JSON: 100, Msgp: 89, JSONZstd: 90, MsgpZstd: 100})
	if choice.now() != JSONZstd {
		t.Errorf("%v was chosen for a gain of a hundredth", choice.now())
	}
	tell(choice, 200, map[Codec]float64{JSON: 100, Msgp: 40, JSONZstd: 90, MsgpZstd: 100})
	if choice.now() != Msgp {
		t.Errorf("%v is still in use for data that has changed", choice.now())
	}
}

func TestAutoMeasuresTheFirstValuesAndThenFew(t *testing.T) {
	choice := newChoice(Balanced, true)
	measured := 0
	for range 10 * measuredLater {
		if choice.isDue() {
			measured++
			choice.measured(nil)
		}
	}
	if measured != measuredFirst+10 {
		t.Errorf("%d of %d values were measured", measured, 10*measuredLater)
	}
}

func TestAutoCompressesPagesOfRecordsForMemoryAndLeavesSmallValuesAlone(t *testing.T) {
	records := layout.Records(100)
	// Ten times as long as a machine takes that has nothing else to do; how long a busy one takes is chance.
	const compressing = float64(time.Millisecond)
	pages, costs := newTestCoder[layout.Layouts](t, Options{Codec: Auto, Goal: Memory}), map[Codec]float64{}
	for _, codec := range fixed {
		stored := encoded(t, newTestCoder[layout.Layouts](t, Options{Codec: codec}), &records)
		costs[codec] = pages.choice.cost(len(stored), 0, 0, 1)
		if codecs[codec].compresses {
			costs[codec] += compressing
		}
	}
	tell(pages.choice, 1, costs)
	if !codecs[pages.now()].compresses {
		t.Errorf("%v was chosen for pages of records", pages.now())
	}
	measuring := newTestCoder[layout.Layouts](t, Options{Codec: Auto})
	measuring.choice.price = float64(time.Hour) // So that no time matters.
	for range measuredFirst {
		encoded(t, measuring, &records)
	}
	if !codecs[measuring.now()].compresses {
		t.Errorf("%v was chosen where only bytes matter", measuring.now())
	}
	numbers := newTestCoder[int](t, Options{Codec: Auto})
	number := 7
	if got := string(encoded(t, numbers, &number)); got != "7" {
		t.Errorf("a number is stored as %q", got)
	}
	if numbers.form.hasMsgp() || len(numbers.choice.candidates) != 2 {
		t.Error("a type without generated code has a choice of JSON only")
	}
}

func TestEntriesOfKeysThatTheEnvelopeExcludesAreNeitherCompressedNorMeasured(t *testing.T) {
	codec, err := envelope.New(envelope.Options{Exclude: []string{"v2:lock:*"}})
	if err != nil {
		t.Fatal(err)
	}
	coder := newTestCoder[layout.Layouts](t, Options{Envelope: codec})
	coder.choice.price = float64(time.Hour) // So that no time matters.
	records := layout.Records(50)
	for key, isExcluded := range map[string]bool{"v2:lock:1": true, "v2:user:1": false} {
		measured := coder.choice.written.Load()
		stored, err := coder.encode(key, &records, false, 1)
		if err != nil || envelope.Is(stored) == isExcluded {
			t.Errorf("%s: %d bytes are stored: %v", key, len(stored), err)
		}
		if isLeft := coder.choice.written.Load() == measured; isLeft != isExcluded {
			t.Errorf("%s: it is measured: %v", key, !isLeft)
		}
		if read := decoded(t, coder, stored); !reflect.DeepEqual(read, records) {
			t.Errorf("%s: %v comes back", key, read)
		}
	}
}

func TestAutoStoresWhatJSONCannotSayAsMessagePack(t *testing.T) {
	coder := newTestCoder[profile](t, Options{Codec: Auto})
	value := profile{Score: math.Inf(1)}
	read := decoded(t, coder, encoded(t, coder, &value))
	if !math.IsInf(read.Score, 1) {
		t.Errorf("%v was read", read.Score)
	}
}

func TestWhatIsOnlyMeasuredIsNotCounted(t *testing.T) {
	codec, err := envelope.New(envelope.Options{})
	if err != nil {
		t.Fatal(err)
	}
	coder := newTestCoder[layout.Layouts](t, Options{Envelope: codec})
	records := layout.Records(100)
	for range 2 * measuredFirst {
		encoded(t, coder, &records)
	}
	counted := codec.Statistics()
	if counted.Zstd.DecodedValues+counted.None.DecodedValues != 0 {
		t.Errorf("nothing was read, and %+v was counted", counted)
	}
	if counted.Zstd.EncodedValues+counted.None.EncodedValues > 2*measuredFirst {
		t.Errorf("%d values were written, and %+v was counted", 2*measuredFirst, counted)
	}
}
