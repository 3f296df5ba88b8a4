package policy

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"snugly.dev/go/internal/vectors"
)

// tried considers a value so many times, reports what came of each attempt, and counts them.
func tried(memory *Policy, value []byte, times int, gained bool) (attempts int) {
	for range times {
		if attempt, reason := memory.Consider(value, false); reason == None {
			attempts++
			attempt.Report(gained)
		}
	}
	return attempts
}

// due skips values until one is tried, and gives the attempt.
func due(t *testing.T, memory *Policy, value []byte) Attempt {
	t.Helper()
	for range 257 {
		if attempt, reason := memory.Consider(value, false); reason == None {
			return attempt
		}
	}
	t.Fatal("none of 257 values was tried")
	return Attempt{}
}

// json is of a length, and looks like text.
func json(size int) []byte {
	return bytes.Repeat([]byte(`{"id":4711,"name":"amber basin","price":12.95},`), size/47+1)[:size]
}

// kinds are values that look different, and the most attempts of 10,000 that fail.
var kinds = []struct {
	name   string
	value  []byte
	most   int
	reason Reason
}{
	{"short text", json(100), 10_000/16 + 20, NoGain},
	{"text", json(30_000), 10_000/16 + 20, NoGain},
	{"base64", symbols(64, 400, 1), 10_000/64 + 20, NoGain},
	{"noise", vectors.Noise(1, 1000), 10_000/256 + 20, Compressed},
	{"long noise", vectors.Noise(1, 256<<10), 10_000/256 + 20, Compressed},
}

func TestWhatNeverShrinksIsSoonTriedOnlyRarelyButNeverForgotten(t *testing.T) {
	for _, kind := range kinds {
		memory := new(Policy)
		if attempts := tried(memory, kind.value, 10_000, false); attempts > kind.most {
			t.Errorf("%s: %d of 10,000 values were tried", kind.name, attempts)
		}
		if _, reason := memory.Consider(kind.value, false); reason != kind.reason {
			t.Errorf("%s: skipped for the reason %d", kind.name, reason)
		}
		due(t, memory, kind.value)
	}
}

func TestAValueThatShrinksEndsTheBackOff(t *testing.T) {
	for _, kind := range kinds {
		memory := new(Policy)
		tried(memory, kind.value, 10_000, false)
		due(t, memory, kind.value).Report(true)
		if attempts := tried(memory, kind.value, 100, true); attempts != 100 {
			t.Errorf("%s: %d of 100 values were tried after a success", kind.name, attempts)
		}
	}
}

func TestTheFirstFailuresOfValuesThatDoNotLookRandomAreTakenForChance(t *testing.T) {
	if attempts := tried(new(Policy), json(300), 1+patience, false); attempts != 1+patience {
		t.Errorf("%d of %d values were tried", attempts, 1+patience)
	}
}

func TestShortValuesAreLookedAtOnlyAfterAFailure(t *testing.T) {
	memory, noise := new(Policy), vectors.Noise(1, 1000)
	for range 100 {
		attempt, _ := memory.Consider(noise, false)
		if attempt.backoff != nil {
			t.Fatal("a value was looked at though nothing had failed")
		}
		attempt.Report(true)
	}
	attempt, _ := memory.Consider(noise, false)
	attempt.Report(false)
	for range suspicionStep {
		if attempt, _ = memory.Consider(noise, false); attempt.backoff == nil {
			t.Error("a value was not looked at though one of its likes had failed")
		}
		attempt.Report(true)
	}
	if attempt, _ = memory.Consider(noise, false); attempt.backoff != nil {
		t.Error("a value was looked at after enough successes")
	}
}

func TestValuesOfOtherLengthsAndWithADictionaryAreRememberedForThemselves(t *testing.T) {
	memory := new(Policy)
	tried(memory, vectors.Noise(1, 1000), 1000, false)
	for name, consider := range map[string]func() (Attempt, Reason){
		"another length":    func() (Attempt, Reason) { return memory.Consider(vectors.Noise(1, 2000), false) },
		"with a dictionary": func() (Attempt, Reason) { return memory.Consider(vectors.Noise(1, 1000), true) },
		"another spread":    func() (Attempt, Reason) { return memory.Consider(json(1000), false) },
	} {
		if _, reason := consider(); reason != None {
			t.Errorf("%s: skipped for the reason %d", name, reason)
		}
	}
}

func TestCompressedFilesAreLeftAloneFromTheFirstOnAndTextThatStartsSoIsNot(t *testing.T) {
	for _, row := range magics {
		if row.offset > 0 {
			continue
		}
		if _, reason := new(Policy).Consider(append([]byte(row.bytes), vectors.Noise(1, 500)...), false); reason != Compressed {
			t.Errorf("%q, and noise: the reason is %d", row.bytes, reason)
		}
		if _, reason := new(Policy).Consider(append([]byte(row.bytes), json(500)...), false); reason != None {
			t.Errorf("%q, and text: the reason is %d", row.bytes, reason)
		}
	}
}

func TestNoPolicyTriesEverything(t *testing.T) {
	if attempts := tried(nil, vectors.Noise(1, 20_000), 100, false); attempts != 100 {
		t.Errorf("%d of 100 values were tried", attempts)
	}
}

// goroutines lets many do something at once, and gives how often it was true.
func goroutines(do func(worker, round int) bool) int64 {
	const workers, each = 64, 1000
	var all sync.WaitGroup
	var times atomic.Int64
	for worker := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := range each {
				if do(worker, round) {
					times.Add(1)
				}
			}
		}()
	}
	all.Wait()
	return times.Load()
}

func TestManyGoroutinesTogetherTryWhatNeverShrinksAsRarelyAsOneDoes(t *testing.T) {
	memory, noise := new(Policy), vectors.Noise(1, 1000)
	tried(memory, noise, 1000, false)
	attempts := goroutines(func(int, int) bool {
		attempt, reason := memory.Consider(noise, false)
		attempt.Report(false)
		return reason == None
	})
	if attempts == 0 || attempts > 64_000/256+64 {
		t.Errorf("%d of 64,000 values were tried", attempts)
	}
}

func TestWhileOneMakesTheAttemptThatIsDueOthersSkip(t *testing.T) {
	for _, kind := range kinds {
		memory := new(Policy)
		tried(memory, kind.value, 10_000, false)
		attempt := due(t, memory, kind.value)
		if _, reason := memory.Consider(kind.value, false); reason == None {
			t.Errorf("%s: two were tried at once", kind.name)
		}
		attempt.Report(true)
		if _, reason := memory.Consider(kind.value, false); reason != None {
			t.Errorf("%s: skipped after a success", kind.name)
		}
	}
}

func TestWhatShrinksIsNeverSkippedWhateverOtherGoroutinesWrite(t *testing.T) {
	memory, text := new(Policy), json(300)
	skipped := goroutines(func(worker, round int) bool {
		value := text
		if worker%2 == 0 {
			value = vectors.Noise(uint64(round), 300)
		}
		attempt, reason := memory.Consider(value, false)
		attempt.Report(worker%2 == 1)
		return worker%2 == 1 && reason != None
	})
	if skipped > 0 {
		t.Errorf("%d of 32,000 values were skipped", skipped)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, kind := range kinds {
		memory := new(Policy)
		if allocations := testing.AllocsPerRun(1000, func() { tried(memory, kind.value, 1, false) }); allocations > 0 {
			t.Errorf("%s: %v allocations", kind.name, allocations)
		}
	}
}

func BenchmarkConsider(b *testing.B) {
	for _, kind := range kinds {
		for _, gained := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/gained=%v", kind.name, gained), func(b *testing.B) {
				tried(new(Policy), kind.value, b.N, gained)
			})
		}
	}
}
