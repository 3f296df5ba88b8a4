package envelope

import (
	"bytes"
	"testing"
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
