package envelope

import (
	"iter"
	"sync/atomic"
	"time"
)

// BackendStatistics are the counts of one backend.
type BackendStatistics struct {
	EncodedValues, EncodedBytesIn, EncodedBytesOut uint64
	DecodedValues, DecodedBytesIn, DecodedBytesOut uint64
}

// Statistics are the counts of a codec since it was made. The names that All gives are the same in every language and
// in the server.
type Statistics struct {
	// None is for values that were sent, and stored, as they are.
	None, LZ4, Zstd, ZstdDictionary, LZ4Dictionary BackendStatistics
	// SkippedSmall counts values left alone because they are shorter than Options.MinCompressionSize.
	SkippedSmall uint64
	// SkippedLarge counts values left alone because they are longer than Options.MaxDecompressedSize.
	SkippedLarge uint64
	// SkippedCompressed counts values left alone because they are compressed already, or look random.
	SkippedCompressed uint64
	// SkippedNoGain counts values left alone because compressing them gains nothing.
	SkippedNoGain uint64
	// EncodeFailures counts values left alone because compressing them failed.
	EncodeFailures uint64
	// DecodeFailures counts values that could not be read back.
	DecodeFailures uint64
	// DictionaryHits counts values read back with a dictionary that was at hand.
	DictionaryHits uint64
	// DictionaryMisses counts values whose dictionary was not at hand.
	DictionaryMisses uint64
	// EncodeNanoseconds and DecodeNanoseconds are the time spent, estimated from a sample.
	EncodeNanoseconds, DecodeNanoseconds uint64
	// DictionariesFetched counts dictionaries that were fetched from a server or a folder, DictionariesPutBack those that
	// were not in the server any more and were put back, and DictionariesMended those in whose place something else was. A
	// codec alone counts none of them.
	DictionariesFetched, DictionariesPutBack, DictionariesMended uint64
}

// All gives all counters and their names.
func (s Statistics) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, row := range s.rows() {
			if !yield(row.name, *row.value) {
				return
			}
		}
	}
}

type statisticsRow struct {
	name  string
	value *uint64
}

func (s *Statistics) rows() []statisticsRow {
	var rows []statisticsRow
	for at, codec := range []*BackendStatistics{&s.None, &s.LZ4, &s.Zstd, &s.ZstdDictionary, &s.LZ4Dictionary} {
		name := [...]string{"none", "lz4", "zstd", "zstd_dictionary", "lz4_dictionary"}[at]
		rows = append(rows,
			statisticsRow{"encoded_values_" + name, &codec.EncodedValues},
			statisticsRow{"encoded_bytes_in_" + name, &codec.EncodedBytesIn},
			statisticsRow{"encoded_bytes_out_" + name, &codec.EncodedBytesOut},
			statisticsRow{"decoded_values_" + name, &codec.DecodedValues},
			statisticsRow{"decoded_bytes_in_" + name, &codec.DecodedBytesIn},
			statisticsRow{"decoded_bytes_out_" + name, &codec.DecodedBytesOut},
		)
	}
	return append(rows,
		statisticsRow{"skipped_small", &s.SkippedSmall},
		statisticsRow{"skipped_large", &s.SkippedLarge},
		statisticsRow{"skipped_compressed", &s.SkippedCompressed},
		statisticsRow{"skipped_no_gain", &s.SkippedNoGain},
		statisticsRow{"encode_failures", &s.EncodeFailures},
		statisticsRow{"decode_failures", &s.DecodeFailures},
		statisticsRow{"dictionary_hits", &s.DictionaryHits},
		statisticsRow{"dictionary_misses", &s.DictionaryMisses},
		statisticsRow{"encode_nanoseconds", &s.EncodeNanoseconds},
		statisticsRow{"decode_nanoseconds", &s.DecodeNanoseconds},
		statisticsRow{"dictionaries_fetched", &s.DictionariesFetched},
		statisticsRow{"dictionaries_put_back", &s.DictionariesPutBack},
		statisticsRow{"dictionaries_mended", &s.DictionariesMended},
	)
}

// sampled is the number of operations that one which is timed stands for: reading the clock each time would cost more
// than small values do. It is a prime, so that attempts that recur, as one in 16 or 64 values that hardly ever shrink,
// are timed as often as what is between them.
const sampled = 61

// stopwatch times one operation in 61, and not the first, which makes contexts.
type stopwatch struct{ operations atomic.Uint32 }

// running is the beginning of an operation, if it is timed.
type running struct{ since time.Time }

func (s *stopwatch) start() running {
	if s.operations.Add(1)%sampled != sampled/2 {
		return running{}
	}
	return running{time.Now()}
}

// stop adds the time since the start, for all operations that this one stands for.
func (r running) stop(nanoseconds *uint64) {
	if !r.since.IsZero() {
		atomic.AddUint64(nanoseconds, uint64(time.Since(r.since))*sampled)
	}
}
