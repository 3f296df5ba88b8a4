package tests

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	goBlock     = regexp.MustCompile("(?s)```go\n(.*?)```")
	indentation = regexp.MustCompile(`(?m)^[ \t]+`)
)

// TestTheCodeInTheDocumentationIsThatOfExamples: the examples are compiled and run by the tests of their packages.
func TestTheCodeInTheDocumentationIsThatOfExamples(t *testing.T) {
	documentation, err := os.ReadFile("../../../docs/go.md")
	ok(t, err)
	var examples strings.Builder
	for _, path := range []string{"../cache/example_test.go", "../cache/example_types_test.go", "../envelope/example_test.go", "../goredis/example_test.go", "../valkeygo/example_test.go"} {
		content, err := os.ReadFile(path)
		ok(t, err)
		examples.WriteString(indentation.ReplaceAllString(string(content), ""))
	}
	blocks := goBlock.FindAllStringSubmatch(string(documentation), -1)
	if len(blocks) < 4 {
		t.Errorf("only %d blocks of code", len(blocks))
	}
	for _, block := range blocks {
		code := strings.ReplaceAll(indentation.ReplaceAllString(block[1], ""), `"localhost:6379"`, "address")
		if !strings.Contains(examples.String(), code) {
			t.Errorf("no example has this:\n%s", block[1])
		}
	}
}
