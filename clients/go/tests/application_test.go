package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"snugly.dev/go/internal/servers"
)

// TestAnApplicationGetsItsGeneratedCodeAsTheDocumentationSays, in a module that has nothing but this one.
func TestAnApplicationGetsItsGeneratedCodeAsTheDocumentationSays(t *testing.T) {
	servers.Slow(t, "it compiles the generator")
	documentation, err := os.ReadFile("../../../docs/go.md")
	ok(t, err)
	get := string(regexp.MustCompile(`(?m)^    go get -tool (.+)$`).Find(documentation))
	directive := string(regexp.MustCompile("//go:generate [^`]+").Find(documentation))
	types := regexp.MustCompile(`(?s)type User struct \{.*?\n\}\n`).Find(documentation)
	if get == "" || directive == "" || types == nil {
		t.Fatal("the documentation does not say how")
	}
	module, err := filepath.Abs("..")
	ok(t, err)
	folder := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/application\n\ngo 1.24.9\n\nrequire snugly.dev/go v0.0.0\n\nreplace snugly.dev/go => " + module + "\n",
		"users.go": "package application\n\nimport \"snugly.dev/go/cache\"\n\n" + directive + "\n\n" + string(types) +
			"\nfunc New(backend cache.Backend, options cache.Options) (*cache.Cache[User], error) { return cache.New[User](backend, options) }\n",
	} {
		ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	run := func(command string) {
		t.Helper()
		words := strings.Fields(command)
		asked := exec.Command(words[0], words[1:]...)
		asked.Dir = folder
		asked.Env = append(os.Environ(), "GOSUMDB=off", "GOPROXY=file://"+downloads(t))
		if said, err := asked.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, said)
		}
	}
	run("go get ./...")
	run(get)
	run("go generate ./...")
	run("go build ./...")
	if _, err := os.Stat(filepath.Join(folder, "users_gen.go")); err != nil {
		t.Error(err)
	}
}

// downloads is the folder of the modules that there are, which the network need not be asked for.
func downloads(t *testing.T) string {
	t.Helper()
	folder, err := exec.Command("go", "env", "GOMODCACHE").Output()
	ok(t, err)
	return filepath.Join(strings.TrimSpace(string(folder)), "cache", "download")
}
