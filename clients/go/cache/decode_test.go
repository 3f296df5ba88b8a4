package cache

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The output of snugly decode for an entry.
func TestSnuglyDecodeShowsEntriesOfEveryCodecAsJSON(t *testing.T) {
	program := os.Getenv("SNUGLY_BIN")
	if program == "" {
		t.Skip("SNUGLY_BIN does not name snugly")
	}
	on := onValkey(t)
	address := on.raw.(*redis.Client).Options().Addr
	want := profiles{}
	for number := range 40 {
		want = append(want, profile{ID: int64(number), Name: "Ada", Emails: []string{"ada@example.com"}, At: point{1, -2}})
	}
	for _, codec := range fixed {
		cached := newCache[profiles](t, on, Options{Prefix: codec.String() + ":", Codec: codec})
		check(t, cached.Set(ctx, "all", want))
		shown, err := exec.Command(program, "decode", "--pretty", "--url", "redis://"+address, cached.Key("all")).Output()
		if err != nil {
			t.Fatalf("%v: %v", codec, err)
		}
		var read []map[string]any
		if err := json.Unmarshal(shown, &read); err != nil {
			t.Fatalf("%v: %v in %.100s", codec, err, shown)
		}
		name := map[bool]string{false: "Name", true: "name"}[codecs[codec].isMsgp]
		if len(read) != len(want) || read[7][name] != "Ada" {
			t.Errorf("%v is shown as %.100s", codec, shown)
		}
	}
}
