package policy

import (
	"strings"
	"testing"
)

func TestEveryFormatIsRecognisedByItsFirstBytes(t *testing.T) {
	for _, row := range magics {
		start := make([]byte, row.offset)
		if row.bytes == "WEBP" {
			copy(start, "RIFF")
		}
		value := append(start, row.bytes...)
		if !hasMagic(value) {
			t.Errorf("%q was not recognised", value)
		}
		if hasMagic(value[:len(value)-1]) {
			t.Errorf("%q was recognised, which is cut off", value[:len(value)-1])
		}
	}
}

func TestTextAndNumbersHaveNoMagic(t *testing.T) {
	for value := range strings.SplitSeq(`|{"a": 1}|[1, 2]|<html>|name,price|12345|`+"\x00\x00\x00\x01|Rust", "|") {
		if hasMagic([]byte(value)) {
			t.Errorf("%q was recognised", value)
		}
	}
}
