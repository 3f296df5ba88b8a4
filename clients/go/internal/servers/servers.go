// Package servers starts real servers for the tests of this module, on loopback and free ports, and ends them.
//
// It knows processes and ports, and nothing of compression. SNUGLY_VALKEY_SERVER and SNUGLY_BIN say where valkey-server
// and snugly are; tests that need one that is not there are skipped.
package servers

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// longestStart is how long a server may take until it answers.
const longestStart = 30 * time.Second

// Valkey starts a valkey-server with some more arguments and returns its address.
func Valkey(t testing.TB, arguments ...string) string {
	t.Helper()
	address := "127.0.0.1:" + strconv.Itoa(freePort(t))
	startValkey(t, address, arguments...)
	return address
}

// Snugly starts snugly, which keeps nothing on disk, and returns its address.
func Snugly(t testing.TB) string {
	t.Helper()
	port := strconv.Itoa(freePort(t))
	start(t, found(t, "SNUGLY_BIN", "snugly"), "serve", "--bind", "127.0.0.1", "--port", port)
	await(t, "127.0.0.1:"+port)
	return "127.0.0.1:" + port
}

func startValkey(t testing.TB, address string, arguments ...string) {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--daemonize", "no"}, arguments...)
	start(t, found(t, "SNUGLY_VALKEY_SERVER", "valkey-server"), all...)
	await(t, address)
}

// Cluster is a cluster of primaries.
type Cluster struct {
	// Addresses are those of its nodes; each has the same share of slots.
	Addresses []string
}

// NewCluster starts a cluster of so many primaries, without replicas.
func NewCluster(t testing.TB, nodes int) *Cluster {
	t.Helper()
	cluster := &Cluster{}
	for range nodes {
		address := "127.0.0.1:" + strconv.Itoa(freeClusterPort(t))
		startValkey(t, address, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-require-full-coverage", "no")
		cluster.Addresses = append(cluster.Addresses, address)
	}
	for at, address := range cluster.Addresses {
		first, last := at*16384/nodes, (at+1)*16384/nodes-1
		Ask(t, address, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		Ask(t, address, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(at+1))
		host, port, _ := net.SplitHostPort(cluster.Addresses[0])
		if at > 0 {
			Ask(t, address, "CLUSTER", "MEET", host, port)
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

// Sentinel starts a sentinel that watches a primary under the name of primary, and returns its address.
func Sentinel(t testing.TB, primary string) string {
	t.Helper()
	host, watched, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(freePort(t))
	configuration := filepath.Join(t.TempDir(), "sentinel.conf")
	lines := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor primary %s %s 1\nsentinel down-after-milliseconds primary 1000\nsentinel failover-timeout primary 5000\n", port, host, watched)
	if err := os.WriteFile(configuration, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, found(t, "SNUGLY_VALKEY_SERVER", "valkey-server"), configuration, "--sentinel")
	await(t, "127.0.0.1:"+port)
	return "127.0.0.1:" + port
}

// Ask sends a command over a connection of its own, without any client library, and returns the reply as text. An error
// reply fails the test.
func Ask(t testing.TB, address string, command ...string) string {
	t.Helper()
	reply, err := ask(address, command)
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return reply
}

// Give has a node own the slot of a key, which another has had, and waits until all nodes of the cluster say so.
func (c *Cluster) Give(t testing.TB, slot int, key, from, to string) {
	t.Helper()
	number := strconv.Itoa(slot)
	// Two nodes with the same epoch would argue about their slots.
	Eventually(t, "the nodes do not agree on the epoch", c.hasOneEpoch(t))
	// Whoever imports a slot gets an epoch with it that the others believe, and so goes first.
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

// Eventually waits until something is so.
func Eventually(t testing.TB, otherwise string, isSo func() bool) {
	t.Helper()
	for until := time.Now().Add(longestStart); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal(otherwise)
		}
	}
}

func ask(address string, command []string) (string, error) {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	request := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := connection.Write([]byte(request)); err != nil {
		return "", err
	}
	return read(bufio.NewReader(connection))
}

// read reads a reply that is no array; a null is empty.
func read(from *bufio.Reader) (string, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch {
	case line[0] == '-':
		return "", fmt.Errorf("the server says: %s", line[1:])
	case line[0] != '$':
		return line[1:], nil
	}
	length, err := strconv.Atoi(line[1:])
	if err != nil || length < 0 {
		return "", err
	}
	content := make([]byte, length)
	for at := 0; at < length; {
		count, err := from.Read(content[at:])
		if err != nil {
			return "", err
		}
		at += count
	}
	return string(content), nil
}

// found is the path of a program that the environment names, or that is in PATH under its own name.
func found(t testing.TB, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: set %s", name, variable)
	}
	return path
}

func start(t testing.TB, program string, arguments ...string) {
	t.Helper()
	process := exec.Command(program, arguments...)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// It may have ended by itself.
		_ = process.Process.Kill()
		_ = process.Wait()
	})
}

func await(t testing.TB, address string) {
	t.Helper()
	Eventually(t, "no server at "+address, func() bool {
		_, err := ask(address, []string{"PING"})
		return err == nil
	})
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// freeClusterPort is one whose port of the cluster's bus, 10,000 above, is one as well.
func freeClusterPort(t testing.TB) int {
	t.Helper()
	for {
		if port := freePort(t); port < 55_000 {
			return port
		}
		port := 20_000 + time.Now().Nanosecond()%10_000
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			listener.Close()
			return port
		}
	}
}
