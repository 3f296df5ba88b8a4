package tests

import (
	"archive/zip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"snugly.dev/go/internal/servers"
)

const version = "v0.1.0"

// TestAVersionIsGotAsTheDocumentationSays from a proxy that has this folder as one, without the modules within it.
func TestAVersionIsGotAsTheDocumentationSays(t *testing.T) {
	servers.Slow(t, "it unpacks every module anew")
	documentation, err := os.ReadFile("../../../docs/go.md")
	ok(t, err)
	get := regexp.MustCompile(`(?m)^    go get (snugly\.dev/go)@(v\S+)$`).FindStringSubmatch(string(documentation))
	if get == nil || get[2] != version || !strings.Contains(string(documentation), "`clients/go/"+version+"`") {
		t.Fatal("the documentation does not say how")
	}
	proxy, folder, cache := t.TempDir(), t.TempDir(), t.TempDir()
	publish(t, filepath.Join(proxy, filepath.FromSlash(get[1]), "@v"))
	for name, content := range map[string]string{
		"go.mod": "module example.com/application\n\ngo 1.24.9\n",
		"main.go": "package main\n\nimport (\n\t\"github.com/redis/go-redis/v9\"\n\n\t\"snugly.dev/go/compression\"\n\t\"snugly.dev/go/goredis\"\n)\n\n" +
			"func main() { _, _ = goredis.Compress(redis.NewClient(&redis.Options{}), compression.Options{}) }\n",
	} {
		ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	for _, command := range []string{strings.TrimSpace(get[0]), "go get ./...", "go list -deps ."} {
		words := strings.Fields(command)
		asked := exec.Command(words[0], words[1:]...)
		asked.Dir = folder
		asked.Env = append(os.Environ(), "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOMODCACHE="+cache, "GOPROXY=file://"+proxy+",file://"+downloads(t))
		if said, err := asked.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, said)
		}
	}
	got := filepath.Join(cache, filepath.FromSlash(get[1])+"@"+version)
	if _, err := os.Stat(filepath.Join(got, "LICENSE")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(got, "benchmark", "glide")); err == nil {
		t.Error("another module is in it")
	}
}

// publish puts this module where a proxy has its versions.
func publish(t *testing.T, at string) {
	t.Helper()
	ok(t, os.MkdirAll(at, 0o700))
	module, err := os.ReadFile("../go.mod")
	ok(t, err)
	for name, content := range map[string]string{".mod": string(module), ".info": `{"Version": "` + version + `"}`} {
		ok(t, os.WriteFile(filepath.Join(at, version+name), []byte(content), 0o600))
	}
	file, err := os.Create(filepath.Join(at, version+".zip"))
	ok(t, err)
	packed := zip.NewWriter(file)
	ok(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if _, other := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != ".." && other == nil {
				return fs.SkipDir
			}
			return err
		}
		content, err := os.Open(path)
		if err != nil {
			return err
		}
		defer content.Close()
		within, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		target, err := packed.Create("snugly.dev/go@" + version + "/" + filepath.ToSlash(within))
		if err == nil {
			_, err = io.Copy(target, content)
		}
		return err
	}))
	ok(t, packed.Close())
	ok(t, file.Close())
}
