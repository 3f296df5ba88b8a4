package codecs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"snugly.dev/go/benchmark/layout"
	"snugly.dev/go/cache"
	"snugly.dev/go/envelope"
)

// firstTrained is the first of the records that dictionaries are trained from: others than those that are measured.
const firstTrained = 2_000

// records measures the same records one by one, each at a key of its own, with zstd and with a trained dictionary, of which
// LZ4 makes use, too.
func records(how Settings) error {
	table := newTable("The same records one by one, zstd at its fastest (level 1) where there is nothing else; times in ns for a record",
		"", "bytes of "+count(how.Records), "of zstd's", "encode", "decode")
	for _, form := range []struct{ alone, compressed cache.Codec }{{cache.JSON, cache.JSONZstd}, {cache.Msgp, cache.MsgpZstd}} {
		dictionary, err := trainedOn(form.alone, how.trained())
		if err != nil {
			return err
		}
		rows := []recordsRow{{form.alone, envelope.Zstd, fastest, nil}, {form.compressed, envelope.Zstd, fastest, nil}}
		if dictionary != nil {
			rows = append(rows,
				recordsRow{form.compressed, envelope.Zstd, fastest, dictionary}, recordsRow{form.compressed, envelope.Zstd, stronger, dictionary},
				recordsRow{form.compressed, envelope.LZ4, 0, dictionary}, recordsRow{form.compressed, envelope.LZ4, stronger, dictionary})
		}
		if err := measureRecords(how, table, rows); err != nil {
			return err
		}
	}
	if err := table.print(); err != nil {
		return err
	}
	return predictable(how)
}

// recordsRow is how records are encoded.
type recordsRow struct {
	codec      cache.Codec
	backend    envelope.Backend // Of the codecs that compress.
	level      int
	dictionary *envelope.Dictionary
}

func (r recordsRow) name() string {
	if r.dictionary == nil {
		return r.codec.String()
	}
	name := strings.Replace(r.codec.String(), string(envelope.Zstd), string(r.backend), 1)
	return fmt.Sprintf("%s, level %d, dictionary of %s bytes", name, r.level, count(len(r.dictionary.Bytes())))
}

// measureRecords adds rows to a table; the second one is that of zstd alone.
func measureRecords(how Settings, table table, rows []recordsRow) error {
	values := layout.Records(how.Records)
	sizes := make([]int, len(rows))
	var encoders, decoders []func()
	for at, row := range rows {
		options := envelope.Options{Backend: row.backend, CompressionLevel: row.level}
		if row.dictionary != nil {
			options.Dictionaries = envelope.Only(row.dictionary)
		}
		records, err := newCache[layout.Layout](row.codec, options)
		if err != nil {
			return err
		}
		stored := make([][]byte, len(values))
		for number, value := range values {
			if stored[number], err = records.Encode("record", value); err != nil {
				return err
			}
			sizes[at] += len(stored[number])
			back, err := records.Decode(context.Background(), "record", stored[number])
			if err != nil || back != value {
				return fmt.Errorf("record %d came back as %v: %w", number, back, err)
			}
		}
		encoders = append(encoders, func() {
			for _, value := range values {
				_, _ = records.Encode("record", value)
			}
		})
		decoders = append(decoders, func() {
			for _, entry := range stored {
				_, _ = records.Decode(context.Background(), "record", entry)
			}
		})
	}
	encoding, decoding := measure(how, encoders...), measure(how, decoders...)
	for at, row := range rows {
		table.row(row.name(), count(sizes[at]), ratio(float64(sizes[at])/float64(sizes[1])),
			nanoseconds(encoding[at].nanoseconds/float64(how.Records)), nanoseconds(decoding[at].nanoseconds/float64(how.Records)))
	}
	return nil
}

// predictable says how much of a record is the same in all, which a dictionary saves, and what is left to say.
func predictable(how Settings) error {
	total, values := 0, 0
	for _, record := range layout.Records(how.Records) {
		text, err := json.Marshal(record)
		if err != nil {
			return err
		}
		total += len(text)
		values += valueBytes(text)
	}
	fmt.Printf("\nOf the JSON, %.0f %% are names and punctuation, which a dictionary knows, and %.0f %% are values. These are computed\n"+
		"from a record's number: several count up together, and two never change. Real ones may say more, and save less.\n",
		100-100*float64(values)/float64(total), 100*float64(values)/float64(total))
	return nil
}

// valueBytes is how much of a JSON text are values, and not the names and punctuation of objects.
func valueBytes(text []byte) int {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return len(text)
	}
	total := 0
	for _, value := range fields {
		total += valueBytes(value)
	}
	return total
}
