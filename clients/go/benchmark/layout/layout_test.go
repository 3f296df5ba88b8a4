package layout_test

import (
	"encoding/json"
	"testing"

	"snugly.dev/go/benchmark/layout"
)

// The sizes are those that were published, which shows that the records are the same.
func TestAThousandRecordsHaveThePublishedSizes(t *testing.T) {
	records := layout.Records(1000)
	text, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := records.MarshalMsg(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 256_243 || len(packed) != 189_709 {
		t.Errorf("JSON takes %d bytes and MessagePack %d, not 256243 and 189709", len(text), len(packed))
	}
}
