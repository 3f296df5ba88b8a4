package servers

import "testing"

// Slow leaves a test, or a part of one, to the long run: `go test -short` skips it and says why.
func Slow(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in a short run: " + why)
	}
}

// Why tests take long, for Slow.
const (
	ClusterTakesLong  = "the nodes of a cluster serve two seconds after they have met"
	FailoverTakesLong = "a failover takes seconds"
)
