package globs

import (
	"strings"
	"testing"
)

func TestManyStarsDoNotTakeExponentialTime(t *testing.T) {
	if Matches(strings.Repeat("a*", 50)+"b", strings.Repeat("a", 10_000)) {
		t.Error("there is no b")
	}
}

func TestPatternsThatAreNotFinishedMatchAsInKEYS(t *testing.T) {
	for _, each := range []struct {
		pattern, key string
		matches      bool
	}{
		{"lock[ab", "lockb", true}, {"lock[ab", "lockc", false}, {"lock[", "lock", false}, {"lock[^", "lockc", true},
		{`lock\\`, `lock\`, true}, {"", "lock", false}, {"", "", true}, {"**", "", false}, {"\xff*", "\xffkey", true},
	} {
		if Matches(each.pattern, each.key) != each.matches {
			t.Errorf("%q matches %q: %v", each.pattern, each.key, !each.matches)
		}
	}
}

func TestOneOfSomePatternsIsEnoughAndNoneMatchesNothing(t *testing.T) {
	patterns := []string{"lock:*", "token:?"}
	for key, isOne := range map[string]bool{"lock:1": true, "token:1": true, "token:12": false, "": false} {
		if MatchesAny(patterns, key) != isOne {
			t.Errorf("%q: %v", key, !isOne)
		}
	}
	if MatchesAny(nil, "lock:1") {
		t.Error("no pattern matches")
	}
}
