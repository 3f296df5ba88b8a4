package servers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sentinel starts a sentinel that watches a primary under the name of primary, and returns its address.
func Sentinel(t testing.TB, primary string) string {
	t.Helper()
	host, watched, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	configuration := filepath.Join(t.TempDir(), "sentinel.conf")
	return start(t, found(t, "SNUGLY_VALKEY_SERVER", "valkey-server"), func(port string) []string {
		// Its timeouts are the default ones: a primary that a busy machine holds up is not down.
		lines := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor primary %s %s 1\n", port, host, watched)
		if err := os.WriteFile(configuration, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{configuration, "--sentinel"}
	})
}

// Watched starts a primary with a replica, and a sentinel that watches them, and returns their addresses.
func Watched(t testing.TB) (primary, replica, sentinel string) {
	t.Helper()
	primary = Valkey(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	replica = Valkey(t, "--replicaof", host, port)
	Eventually(t, "the replica has no link to its primary", func() bool {
		return strings.Contains(Ask(t, replica, "INFO", "replication"), "master_link_status:up")
	})
	return primary, replica, Sentinel(t, primary)
}

// FailOver has a sentinel make a replica the primary, and returns when it is.
func FailOver(t testing.TB, sentinel, replica string) {
	t.Helper()
	Eventually(t, "the sentinel does not take the replica", func() bool {
		_, err := ask(sentinel, []string{"SENTINEL", "FAILOVER", "primary"})
		return err == nil
	})
	Eventually(t, "the sentinel does not make the replica the primary", func() bool {
		return strings.Contains(Ask(t, sentinel, "INFO", "sentinel"), "address="+replica)
	})
}
