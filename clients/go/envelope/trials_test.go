package envelope

import (
	"bytes"
	"testing"

	"snugly.dev/go/internal/vectors"
)

func TestTrialsGiveTheSameAndAreNotCounted(t *testing.T) {
	codec, err := New(Options{Backend: LZ4, MinCompressionSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	trials := codec.ForTrials()
	for _, length := range []int{99, 1000} {
		value := bytes.Repeat([]byte("a"), length)
		stored := trials.Encode(nil, value)
		if !bytes.Equal(stored, codec.Encode(nil, value)) || Is(stored) != (length > 100) {
			t.Errorf("%d bytes become %x", length, stored)
		}
	}
	if counted := codec.Statistics(); counted.None.EncodedValues != 1 || counted.LZ4.EncodedValues != 1 {
		t.Errorf("%+v was counted", counted)
	}
}

func TestTrialsTryEveryValueAndAreNotRemembered(t *testing.T) {
	codec, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	trials := codec.ForTrials()
	shrinks := bytes.Repeat(vectors.Noise(1, 2000), 10)
	for seed := range uint64(300) {
		trials.Encode(nil, vectors.Noise(seed, len(shrinks)))
	}
	if stored := codec.Encode(nil, shrinks); !Is(stored) {
		t.Error("what was only tried is remembered")
	}
	for seed := range uint64(300) {
		codec.Encode(nil, vectors.Noise(seed, len(shrinks)))
	}
	if stored := trials.Encode(nil, shrinks); !Is(stored) {
		t.Error("a value that shrinks was not tried")
	}
	if counted := trials.Statistics(); counted.SkippedCompressed > 0 || counted.SkippedNoGain != 300 {
		t.Errorf("of 300 values that do not shrink some were not tried: %+v", counted)
	}
}
