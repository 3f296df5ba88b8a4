package envelope_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// records are values of about 1,440 bytes of which no two are the same.
func records() [][]byte {
	made := make([][]byte, 64)
	for number := range made {
		noise := vectors.Noise(uint64(number), 400)
		var record strings.Builder
		fmt.Fprintf(&record, `{"id":%d,"items":[`, number*7919)
		for at := 0; record.Len() < 1300; at += 8 {
			fmt.Fprintf(&record, `{"sku":"%x","title":"the %d. thing of %d","quantity":%d,"price":%d.%02d},`, noise[at:at+4], noise[at+4], noise[at+5], noise[at+6]%10, noise[at+7], noise[at]%100)
		}
		made[number] = append([]byte(record.String()), "null]}"...)
	}
	return made
}

func eachTool(b *testing.B, measure func(b *testing.B, tool *envelope.Codec)) {
	dictionary := load(b, readReaderVectors(b).Dictionaries["profiles"].Bytes)
	for _, each := range []struct {
		name    string
		options envelope.Options
	}{
		{"none", envelope.Options{Backend: envelope.None}}, {"lz4", envelope.Options{Backend: envelope.LZ4}},
		{"zstd", envelope.Options{}}, {"zstd 4", envelope.Options{CompressionLevel: 4}},
		{"zstd with a dictionary", envelope.Options{Dictionaries: envelope.Only(dictionary)}},
		{"lz4 with a dictionary", envelope.Options{Backend: envelope.LZ4, Dictionaries: envelope.Only(dictionary)}},
	} {
		b.Run(each.name, func(b *testing.B) {
			b.ReportAllocs()
			measure(b, codec(b, each.options))
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	values := records()
	eachTool(b, func(b *testing.B, tool *envelope.Codec) {
		var stored []byte
		for at := range b.N {
			stored, _ = tool.AppendEnvelope(stored[:0], "key", values[at%len(values)])
		}
		b.ReportMetric(float64(len(stored))/float64(len(values[0])), "ratio")
	})
}

// BenchmarkEncodeKinds is for values that shrink and for those that do not, written by one goroutine and by many.
func BenchmarkEncodeKinds(b *testing.B) {
	var short, noise, blocks [][]byte
	for number := range 64 {
		random := vectors.Noise(uint64(number), 18)
		short = append(short, fmt.Appendf(nil, `{"id":%d,"name":"customer %d","token":%q,"at":%d,"active":true}`,
			number*7919, number, base64.StdEncoding.EncodeToString(random), 1_700_000_000+number*104_729))
		noise = append(noise, vectors.Noise(uint64(number), 100))
		blocks = append(blocks, vectors.Noise(uint64(number), 16<<10))
	}
	for _, kind := range []struct {
		name   string
		values [][]byte
	}{{"short JSON", short}, {"noise", noise}, {"records", records()}, {"blocks", blocks}} {
		for _, backend := range []envelope.Backend{envelope.LZ4, envelope.Zstd} {
			for _, goroutines := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/%s/%d", kind.name, backend, goroutines), func(b *testing.B) {
					encodeInTurn(b, codec(b, envelope.Options{Backend: backend}), kind.values, goroutines)
				})
			}
		}
	}
}

// encodeInTurn encodes b.N values, shared out among goroutines.
func encodeInTurn(b *testing.B, tool *envelope.Codec, values [][]byte, goroutines int) {
	var all sync.WaitGroup
	for first := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			stored := make([]byte, 0, 32<<10)
			for at := first; at < b.N; at += goroutines {
				stored, _ = tool.AppendEnvelope(stored[:0], "key", values[at%len(values)])
			}
		}()
	}
	all.Wait()
	counted := tool.Statistics()
	b.ReportMetric(float64(counted.None.EncodedValues)/float64(b.N), "as_is")
}

func BenchmarkDecode(b *testing.B) {
	eachTool(b, func(b *testing.B, tool *envelope.Codec) {
		var stored [][]byte
		for _, value := range records() {
			stored = append(stored, tool.Encode(nil, value))
		}
		var value []byte
		for at := range b.N {
			value, _, _ = tool.AppendValue(context.Background(), value[:0], "key", stored[at%len(stored)])
		}
	})
}
