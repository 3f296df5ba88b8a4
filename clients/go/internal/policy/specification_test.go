package policy

import (
	"encoding/hex"
	"testing"

	"snugly.dev/go/internal/vectors"
)

// specification is spec/vectors/policy.json.
type specification struct {
	Values      map[string]vectors.Bytes
	Spreads     map[string]string
	Transcripts []struct {
		Name       string
		Dictionary bool
		Steps      []struct {
			Value, Verdict string
			Gained         bool
			Times          int
		}
	}
}

func TestTranscriptsOfTheSpecificationComeOutAsWritten(t *testing.T) {
	var specified specification
	vectors.Read(t, "vectors/policy.json", &specified)
	if len(specified.Transcripts) == 0 {
		t.Fatal("there is no transcript")
	}
	for _, transcript := range specified.Transcripts {
		memory := new(Policy)
		for _, step := range transcript.Steps {
			for range step.Times {
				attempt, reason := memory.Consider(specified.Values[step.Value], transcript.Dictionary)
				if verdict := verdictOf(attempt, reason); verdict != step.Verdict {
					t.Fatalf("%s: %s of %s, not %s", transcript.Name, verdict, step.Value, step.Verdict)
				}
				if reason == None {
					attempt.Report(step.Gained)
				}
			}
		}
	}
}

// verdictOf is what the specification calls a decision.
func verdictOf(attempt Attempt, reason Reason) string {
	switch {
	case reason == Compressed:
		return "compressed"
	case reason == NoGain:
		return "no_gain"
	case attempt.IsDoubtful():
		return "doubtful"
	}
	return "try"
}

func TestValuesLookAsTheSpecificationSays(t *testing.T) {
	var specified specification
	vectors.Read(t, "vectors/policy.json", &specified)
	names := map[spread]string{even: "even", mixed: "mixed", skewed: "skewed"}
	for name, wanted := range specified.Spreads {
		if seen := names[spreadOf(specified.Values[name])]; seen != wanted {
			t.Errorf("%s looks %s, not %s", name, seen, wanted)
		}
	}
}

func TestTheFormatsAreThoseOfTheSpecification(t *testing.T) {
	var specified []struct {
		Offset int
		Hex    string
	}
	vectors.Read(t, "data/magic.json", &specified)
	if len(specified) != len(magics) {
		t.Fatalf("there are %d formats, not %d", len(magics), len(specified))
	}
	for at, row := range specified {
		if own := magics[at]; own.offset != row.Offset || hex.EncodeToString([]byte(own.bytes)) != row.Hex {
			t.Errorf("format %d is %q at %d, not %s at %d", at, own.bytes, own.offset, row.Hex, row.Offset)
		}
	}
}
