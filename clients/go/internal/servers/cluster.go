package servers

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Cluster is a cluster of primaries.
type Cluster struct {
	// Addresses are those of its nodes; each has the same share of slots.
	Addresses []string
}

// NewCluster starts a cluster of so many primaries, without replicas.
func NewCluster(t testing.TB, nodes int) *Cluster {
	t.Helper()
	cluster := &Cluster{}
	var first string // The port of the first node's cluster bus.
	for range nodes {
		var bus string
		cluster.Addresses = append(cluster.Addresses, valkey(t, func() []string {
			bus = freePort(t)
			return []string{"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-require-full-coverage", "no"}
		}))
		first = cmp.Or(first, bus)
	}
	for at, address := range cluster.Addresses {
		Ask(t, address, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(at*16384/nodes), strconv.Itoa((at+1)*16384/nodes-1))
		Ask(t, address, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(at+1))
		host, port, _ := net.SplitHostPort(cluster.Addresses[0])
		if at > 0 {
			Ask(t, address, "CLUSTER", "MEET", host, port, first)
		}
	}
	for _, address := range cluster.Addresses {
		Eventually(t, address+" does not know the cluster", func() bool {
			info := Ask(t, address, "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_assigned:16384") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", nodes))
		})
	}
	return cluster
}

// Slot is that of a key.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	slot, err := strconv.Atoi(Ask(t, c.Addresses[0], "CLUSTER", "KEYSLOT", key))
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

// Owner is the node whose share has a slot, as long as nobody gives it away, and other is one that is not.
func (c *Cluster) Owner(slot int) (owner, other string) {
	at, nodes := 0, len(c.Addresses)
	for slot >= (at+1)*16384/nodes {
		at++
	}
	return c.Addresses[at], c.Addresses[(at+1)%nodes]
}

// Migrate has a slot in the middle of a move: from answers ASK for keys that it does not have.
func (c *Cluster) Migrate(t testing.TB, slot int, from, to string) {
	t.Helper()
	number := strconv.Itoa(slot)
	Ask(t, to, "CLUSTER", "SETSLOT", number, "IMPORTING", Ask(t, from, "CLUSTER", "MYID"))
	Ask(t, from, "CLUSTER", "SETSLOT", number, "MIGRATING", Ask(t, to, "CLUSTER", "MYID"))
}

// Give has a node own the slot of a key, which another has had, and waits until all nodes of the cluster say so.
func (c *Cluster) Give(t testing.TB, slot int, key, from, to string) {
	t.Helper()
	number := strconv.Itoa(slot)
	// Two nodes with the same epoch would argue about their slots.
	Eventually(t, "the nodes do not agree on the epoch", c.hasOneEpoch(t))
	// A node that imports a slot gets an epoch with it that the others believe, and so goes first.
	Ask(t, to, "CLUSTER", "SETSLOT", number, "IMPORTING", Ask(t, from, "CLUSTER", "MYID"))
	others := slices.DeleteFunc(slices.Clone(c.Addresses), func(address string) bool { return address == to })
	for _, address := range append([]string{to}, others...) {
		Ask(t, address, "CLUSTER", "SETSLOT", number, "NODE", Ask(t, to, "CLUSTER", "MYID"))
	}
	Eventually(t, "the nodes do not agree on the owner of a slot", func() bool {
		for _, address := range others {
			if _, err := ask(address, []string{"EXISTS", key}); err == nil || !strings.Contains(err.Error(), to) {
				return false
			}
		}
		_, err := ask(to, []string{"EXISTS", key})
		return err == nil && c.hasOneEpoch(t)()
	})
}

// hasOneEpoch tells whether all nodes know of the same epoch.
func (c *Cluster) hasOneEpoch(t testing.TB) func() bool {
	epoch := func(address string) string {
		_, found, _ := strings.Cut(Ask(t, address, "CLUSTER", "INFO"), "cluster_current_epoch:")
		epoch, _, _ := strings.Cut(found, "\r\n")
		return epoch
	}
	return func() bool {
		return !slices.ContainsFunc(c.Addresses, func(address string) bool { return epoch(address) != epoch(c.Addresses[0]) })
	}
}
