// Package servers starts real servers for the tests of this module, on loopback and free ports, and ends them.
//
// It knows processes and ports, and nothing of compression. SNUGLY_VALKEY_SERVER and SNUGLY_BIN say where valkey-server
// and snugly are; tests that need one that is not there are skipped.
package servers

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// longestStart is the time that a server has until it answers.
	longestStart = time.Minute
	// mostStarts is the most times that a server is started, if each one has ended before it answered: another process
	// may take a free port first.
	mostStarts = 5
)

// Valkey starts a valkey-server with some more arguments and returns its address.
func Valkey(t testing.TB, arguments ...string) string {
	t.Helper()
	return valkey(t, func() []string { return arguments })
}

// valkey starts a valkey-server with more arguments, which are others each time that it is started anew.
func valkey(t testing.TB, more func() []string) string {
	t.Helper()
	folder := t.TempDir()
	return start(t, found(t, "SNUGLY_VALKEY_SERVER", "valkey-server"), func(port string) []string {
		return append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder, "--daemonize", "no"}, more()...)
	})
}

// Snugly starts snugly, which keeps nothing on disk, and returns its address.
func Snugly(t testing.TB) string {
	t.Helper()
	return start(t, found(t, "SNUGLY_BIN", "snugly"), func(port string) []string {
		return []string{"serve", "--bind", "127.0.0.1", "--port", port}
	})
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

// start starts a server on a free port with the arguments for it, and returns its address once it answers there.
func start(t testing.TB, program string, arguments func(port string) []string) (address string) {
	t.Helper()
	for range mostStarts {
		port := freePort(t)
		address = "127.0.0.1:" + port
		process := run(t, program, arguments(port))
		Eventually(t, "no server at "+address, func() bool { return process.hasEnded() || process.answers(address) })
		if !process.hasEnded() {
			return address
		}
		t.Logf("%v has ended: %s", process.command.Args, &process.output)
	}
	t.Fatalf("%s was started %d times and has always ended before it answered", program, mostStarts)
	return ""
}

// process is a server that has been started.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer // Complete once ended is closed.
	ended   chan struct{}
}

func run(t testing.TB, program string, arguments []string) *process {
	t.Helper()
	made := &process{command: exec.Command(program, arguments...), ended: make(chan struct{})}
	made.command.Stdout, made.command.Stderr = &made.output, &made.output
	if err := made.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = made.command.Wait()
		close(made.ended)
	}()
	t.Cleanup(func() {
		// It may have ended by itself.
		_ = made.command.Process.Kill()
		<-made.ended
	})
	return made
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// answers tells whether it is this process that answers at an address, and not another one that was faster.
func (p *process) answers(address string) bool {
	info, err := ask(address, []string{"INFO", "server"})
	return err == nil && strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", p.command.Process.Pid))
}

func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
