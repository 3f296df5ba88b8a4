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
