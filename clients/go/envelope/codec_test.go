package envelope_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

var page = []byte(strings.Repeat(`{"id": 1, "name": "customer", "active": true}`, 40))

func TestOptionsOutOfRangeAreRefusedWithWhatIsAllowed(t *testing.T) {
	for _, each := range []struct {
		options envelope.Options
		says    string
	}{
		{envelope.Options{Backend: "brotli"}, `Backend is "brotli": choose one of ["zstd" "lz4" "none"]`},
		{envelope.Options{CompressionLevel: 23}, "CompressionLevel is 23: for zstd it is a number from -131072 to 22"},
		{envelope.Options{CompressionLevel: -131073}, "CompressionLevel is -131073: for zstd it is a number from -131072 to 22"},
		{envelope.Options{Backend: envelope.LZ4, CompressionLevel: 13}, "CompressionLevel is 13: for lz4 it is a number from -128 to 12"},
		{envelope.Options{Backend: envelope.LZ4, CompressionLevel: -129}, "CompressionLevel is -129: for lz4 it is a number from -128 to 12"},
		{envelope.Options{Window: 1000}, "Window is 1000: it is a power of 2, a number of bytes from 1024 to"},
		{envelope.Options{Window: 16 << 20}, "Window is 16777216: it is a power of 2"},
		{envelope.Options{MinCompressionSize: 5}, "MinCompressionSize is 5: it is a number of bytes from 6 to"},
		{envelope.Options{MaxDecompressedSize: -1}, "MaxDecompressedSize is -1: it is a number of bytes from 1 to"},
		{envelope.Options{ExistingEnvelopes: "lose"}, `ExistingEnvelopes is "lose": choose one of ["keep" "wrap"]`},
		{envelope.Options{OnUndecodable: "panic"}, `OnUndecodable is "panic": choose one of ["raise" "raw" "miss"]`},
	} {
		_, err := envelope.New(each.options)
		var refused *envelope.OptionError
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), each.says) {
			t.Errorf("got %v, wanted %s", err, each.says)
		}
	}
}

func TestEveryLevelIsTaken(t *testing.T) {
	levels := map[envelope.Backend][]int{
		envelope.Zstd: {-131072, -100, -1, 1, 2, 3, 5, 6, 9, 10, 19, 22},
		envelope.LZ4:  {-128, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
	}
	long := bytes.Repeat(page, 50)
	for backend, each := range levels {
		for _, level := range each {
			tool := codec(t, envelope.Options{Backend: backend, CompressionLevel: level})
			stored := tool.Encode(nil, long)
			if value, err := tool.Decode(nil, stored); err != nil || !bytes.Equal(value, long) || len(stored) > len(long)/2 {
				t.Errorf("%s level %d: %d bytes, %v", backend, level, len(stored), err)
			}
		}
	}
}

// backendsAndChecksums draws how values are written.
func drawOptions(t *rapid.T) envelope.Options {
	return envelope.Options{
		Backend:            rapid.SampledFrom([]envelope.Backend{envelope.Zstd, envelope.LZ4, envelope.None}).Draw(t, "backend"),
		CompressionLevel:   rapid.SampledFrom([]int{-3, 0, 1, 3, 7}).Draw(t, "level"),
		MinCompressionSize: rapid.IntRange(6, 200).Draw(t, "least"),
		Window:             rapid.SampledFrom([]int{0, 1 << 10, 32 << 10}).Draw(t, "window"),
		ExistingEnvelopes:  rapid.SampledFrom([]envelope.ExistingEnvelopes{envelope.Keep, envelope.Wrap}).Draw(t, "existing"),
		Checksum:           rapid.Bool().Draw(t, "checksum"),
	}
}

// drawValue draws bytes as caches hold them: noise, what repeats itself, and what looks like an envelope.
func drawValue(t *rapid.T) []byte {
	unit := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "unit")
	times := rapid.SampledFrom([]int{1, 1, 2, 10, 1000}).Draw(t, "times")
	start := rapid.SampledFrom([]string{"", "", "\x00\x01\x02", "\x00\x01\x02\x00\x01", "\x00\x01\x02\x00\x02", "\x00\x01\x02\x00\x81", "\x00\x01\x02\x00\x82", "\x00\x01\x02\x00\x1f"}).Draw(t, "start")
	return append([]byte(start), bytes.Repeat(unit, times)...)
}

func TestWithASmallWindowLongValuesComeBackToo(t *testing.T) {
	value := bytes.Repeat([]byte("what repeats and repeats"), 200_000)
	rand.New(rand.NewSource(1)).Shuffle(len(value), func(i, j int) { value[i], value[j] = value[j], value[i] })
	for _, length := range []int{64 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1, len(value)} {
		codec, err := envelope.New(envelope.Options{Window: 1 << 10})
		if err != nil {
			t.Fatal(err)
		}
		stored := codec.Encode(nil, value[:length])
		back, err := codec.Decode(nil, stored)
		if err != nil || !bytes.Equal(back, value[:length]) || !envelope.Is(stored) {
			t.Errorf("of %d bytes %d came back: %v", length, len(back), err)
		}
	}
}

func TestValuesOfFewBytesAreCompressedThoughNothingRepeats(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	digits := make([]byte, 1000)
	for at := range digits {
		digits[at] = "0123456789abcdef"[random.Intn(16)]
	}
	for _, level := range []int{1, 3, 4, 6, 10} {
		codec, err := envelope.New(envelope.Options{CompressionLevel: level})
		if err != nil {
			t.Fatal(err)
		}
		if stored := codec.Encode(nil, digits); len(stored) > 600 {
			t.Errorf("at level %d %d digits take %d bytes", level, len(digits), len(stored))
		}
	}
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options := drawOptions(t)
		tool, err := envelope.New(options)
		if err != nil {
			t.Fatal(err)
		}
		value := drawValue(t)
		given := bytes.Clone(value)
		stored := tool.Encode([]byte("before"), value)
		if !bytes.Equal(given, value) || !bytes.HasPrefix(stored, []byte("before")) {
			t.Fatal("what was given was changed")
		}
		stored = stored[len("before"):]
		if len(stored) > len(value) && !envelope.Is(value) {
			t.Fatalf("%d bytes grew to %d", len(value), len(stored))
		}
		read, err := tool.Decode([]byte("before"), stored)
		if options.ExistingEnvelopes == envelope.Keep && envelope.Is(value) && bytes.Equal(stored, value) {
			return // Whatever it is, it was sent as it is.
		}
		if err != nil || !bytes.Equal(read[len("before"):], value) {
			t.Fatalf("%d bytes were stored as %d and not read back: %v", len(value), len(stored), err)
		}
	})
}

func TestWhatIsReadWithADictionaryIsWhatWasWritten(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	rapid.Check(t, func(t *rapid.T) {
		options := drawOptions(t)
		options.Backend = rapid.SampledFrom([]envelope.Backend{envelope.Zstd, envelope.LZ4}).Draw(t, "backend with a dictionary")
		options.Dictionaries = envelope.Only(dictionary)
		options.CompressionLevel = rapid.SampledFrom([]int{-7, 1, 3, 6, 10}).Draw(t, "level with a dictionary")
		tool, err := envelope.New(options)
		if err != nil {
			t.Fatal(err)
		}
		value := []byte(fmt.Sprintf(`{"name": "name-%d", "email": "email-%d", "city": %q}`, rapid.Int().Draw(t, "name"), rapid.Int().Draw(t, "email"), drawValue(t)))
		stored := tool.Encode(nil, value)
		read, err := tool.Decode(nil, stored)
		if err != nil || !bytes.Equal(read, value) {
			t.Fatalf("%d bytes were stored as %d and not read back: %v", len(value), len(stored), err)
		}
		if header, ok := envelope.Inspect(stored); ok && header.Dictionary != dictionary.ID() {
			t.Fatalf("written without the dictionary: %+v", header)
		}
	})
}

func TestADictionarySavesWhereValuesAreShort(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	value := []byte(`{"name": "name-7", "email": "email-8", "city": "city-9", "country": "country-10", "status": "status-11"}`)
	for backend, number := range map[envelope.Backend]byte{envelope.Zstd: 0x81, envelope.LZ4: 0x82} {
		with := codec(t, envelope.Options{Backend: backend, Dictionaries: envelope.Only(dictionary)}).Encode(nil, value)
		without := codec(t, envelope.Options{Backend: backend}).Encode(nil, value)
		if len(with) > len(without)*2/3 || with[4] != number {
			t.Errorf("%s: %d bytes with a dictionary, backend %x, and %d without", backend, len(with), with[4], len(without))
		}
	}
}

func TestWithADictionaryHigherLevelsOfLZ4AreSmaller(t *testing.T) {
	long := load(t, readBlockVectors(t).Dictionaries["long"].Bytes)
	value := bytes.Join(records(), nil)
	before := math.MaxInt
	for _, level := range []int{-20, 0, 1, 6} {
		stored := codec(t, envelope.Options{Backend: envelope.LZ4, CompressionLevel: level, Dictionaries: envelope.Only(long)}).Encode(nil, value)
		if len(stored) >= before {
			t.Errorf("level %d takes %d bytes, and the one before %d", level, len(stored), before)
		}
		before = len(stored)
	}
}

func TestAValueThatIsTakenForAnEnvelopeNeedsNoDictionary(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	value := append([]byte("\x00\x01\x02\x00\x82"), page...)
	for _, backend := range []envelope.Backend{envelope.Zstd, envelope.LZ4} {
		stored := codec(t, envelope.Options{Backend: backend, Dictionaries: envelope.Only(dictionary)}).Encode(nil, value[:60])
		if read, err := codec(t, envelope.Options{}).Decode(nil, stored); err != nil || !bytes.Equal(read, value[:60]) {
			t.Errorf("%s: got %d bytes and %v", backend, len(read), err)
		}
	}
}

func TestValuesOfExcludedKeysAreStoredAsTheyAreAndReadWhateverTheyAre(t *testing.T) {
	patterns := []string{"lock:*", "token:[0-9"}
	excluding := codec(t, envelope.Options{Exclude: patterns})
	// The codec has them for itself.
	patterns[0] = "*"
	for key, isExcluded := range map[string]bool{"lock:1": true, "token:7": true, "token:x": false, "user:1": false, "": false} {
		stored := excluding.EncodeFor(nil, key, page)
		if envelope.Is(stored) == isExcluded || isExcluded && !bytes.Equal(stored, page) {
			t.Errorf("%q: %d bytes are stored", key, len(stored))
		}
		before := codec(t, envelope.Options{}).Encode(nil, page)
		if value, err := excluding.DecodeFor(context.Background(), nil, key, before); err != nil || !bytes.Equal(value, page) {
			t.Errorf("%q: what was written before is not read: %v", key, err)
		}
	}
	if counted := excluding.Statistics(); counted.None.EncodedValues != 2 || counted.SkippedSmall+counted.SkippedCompressed+counted.SkippedNoGain > 0 {
		t.Errorf("counted %+v", counted)
	}
}

func TestWhatLooksLikeAnEnvelopeIsOneForExcludedKeysToo(t *testing.T) {
	whole := codec(t, envelope.Options{}).Encode(nil, page)
	damaged := []byte("\x00\x01\x02\x00\x01damage")
	for _, each := range []struct {
		existing envelope.ExistingEnvelopes
		value    []byte
		isKept   bool
	}{{envelope.Keep, whole, true}, {envelope.Keep, damaged, false}, {envelope.Wrap, whole, false}, {envelope.Wrap, damaged, false}} {
		excluding := codec(t, envelope.Options{Exclude: []string{"*"}, ExistingEnvelopes: each.existing})
		stored := excluding.EncodeFor(nil, "lock:1", each.value)
		if bytes.Equal(stored, each.value) != each.isKept {
			t.Errorf("%s: %d bytes become %d", each.existing, len(each.value), len(stored))
		}
		value, err := excluding.DecodeFor(context.Background(), nil, "lock:1", stored)
		if wanted := each.value; err != nil || !each.isKept && !bytes.Equal(value, wanted) {
			t.Errorf("%s: %q comes back: %v", each.existing, value, err)
		}
	}
}

func TestNothingIsLearnedFromValuesOfExcludedKeys(t *testing.T) {
	excluding := codec(t, envelope.Options{Exclude: []string{"token:*"}})
	shrinks := bytes.Repeat(vectors.Noise(1, 2000), 10)
	for seed := range uint64(300) {
		excluding.EncodeFor(nil, "token:1", vectors.Noise(seed, len(shrinks)))
	}
	if stored := excluding.EncodeFor(nil, "user:1", shrinks); !envelope.Is(stored) {
		t.Error("a value that shrinks is not tried")
	}
}

// fetching has a dictionary that must be fetched.
type fetching struct {
	atHand
	later *envelope.Dictionary
	err   error
}

func (f fetching) Fetch(_ context.Context, id uint32) (*envelope.Dictionary, error) {
	if f.later == nil || f.later.ID() != id {
		return nil, f.err
	}
	return f.later, nil
}

func TestADictionaryThatIsNotAtHandIsFetched(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	stored := codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)}).Encode(nil, page)

	reader := codec(t, envelope.Options{Dictionaries: fetching{later: dictionary}})
	value, err := reader.DecodeFor(context.Background(), nil, "user:1", stored)
	if err != nil || !bytes.Equal(value, page) {
		t.Fatal(err)
	}
	if counted := reader.Statistics(); counted.DictionaryMisses != 1 || counted.DictionaryHits != 0 || counted.DecodeFailures != 0 {
		t.Errorf("counted %+v", counted)
	}

	broken := errors.New("no way to the server")
	without := codec(t, envelope.Options{Dictionaries: fetching{err: broken}})
	_, err = without.DecodeFor(context.Background(), nil, "user:1", stored)
	expectKind(t, err, envelope.DictionaryMissing)
	wanted := fmt.Sprintf(`cannot decode an envelope of %d bytes, backend 81, at key "user:1": it needs the dictionary %d, which is not at hand: no way to the server`, len(stored), dictionary.ID())
	if !errors.Is(err, broken) || err.Error() != wanted {
		t.Errorf("got %v", err)
	}
}

func TestTheDictionaryThatAnEnvelopeNeedsIsTold(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	with := codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)}).Encode(nil, page)
	reader := codec(t, envelope.Options{})
	for stored, wanted := range map[string]uint32{
		string(with):     dictionary.ID(),
		string(with[:6]): 0, // Cut off.
		string(codec(t, envelope.Options{}).Encode(nil, page)): 0,
		string(page): 0,
		"":           0,
	} {
		if got := reader.Needs([]byte(stored)); got != wanted {
			t.Errorf("%.10q: got %d, wanted %d", stored, got, wanted)
		}
	}
}

func TestACodecWithoutDictionariesSaysWhatReadsAValueThatNeedsOne(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	stored := codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)}).Encode(nil, page)
	_, err := codec(t, envelope.Options{}).Decode(nil, stored)
	expectKind(t, err, envelope.DictionaryMissing)
	if !strings.Contains(err.Error(), "a client that compresses fetches it") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyNilIsNoDictionary(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	stored := codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)}).Encode(nil, page)
	without := codec(t, envelope.Options{Dictionaries: envelope.Only(nil)})
	_, err := without.Decode(nil, stored)
	expectKind(t, err, envelope.DictionaryMissing)
	if value, err := without.Decode(nil, without.Encode(nil, page)); err != nil || !bytes.Equal(value, page) {
		t.Errorf("got %d bytes and %v", len(value), err)
	}
}

func TestAWrongDictionaryIsCorruptAndNotAnotherValue(t *testing.T) {
	read := readReaderVectors(t)
	profiles, orders := load(t, read.Dictionaries["profiles"].Bytes), load(t, read.Dictionaries["orders"].Bytes)
	stored := codec(t, envelope.Options{Dictionaries: envelope.Only(profiles)}).Encode(nil, page)
	reader := codec(t, envelope.Options{Dictionaries: atHand{profiles.ID(): orders}})
	_, err := reader.Decode(nil, stored)
	expectKind(t, err, envelope.Corrupt)
}

func TestWhatCannotBeReadIsReturnedAsItIsStoredIfThatIsWanted(t *testing.T) {
	stored := append([]byte("\x00\x01\x02\x00\x01"), "damage"...)
	reader := codec(t, envelope.Options{OnUndecodable: envelope.Raw})
	value, err := reader.Decode([]byte("before"), stored)
	expectValue(t, value, err, stored)
	if counted := reader.Statistics(); counted.DecodeFailures != 1 || counted.None.DecodedValues != 0 {
		t.Errorf("counted %+v", counted)
	}
}

func TestCountersHaveTheNamesOfTheSpecification(t *testing.T) {
	var specified struct {
		EachCodec map[string]string `json:"each_codec"`
		AllCodecs map[string]string `json:"all_codecs"`
		Clients   map[string]string
	}
	vectors.Read(t, "data/counters.json", &specified)
	wanted := slices.Collect(maps.Keys(specified.AllCodecs))
	wanted = slices.AppendSeq(wanted, maps.Keys(specified.Clients))
	for family := range specified.EachCodec {
		for _, codec := range []string{"none", "lz4", "zstd", "zstd_dictionary", "lz4_dictionary"} {
			wanted = append(wanted, family+"_"+codec)
		}
	}
	var got []string
	for name := range (envelope.Statistics{}).All() {
		got = append(got, name)
	}
	slices.Sort(wanted)
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		t.Errorf("got %q, wanted %q", got, wanted)
	}
}

func TestEverythingIsCountedUnderItsName(t *testing.T) {
	tool := codec(t, envelope.Options{MaxDecompressedSize: 4000})
	stored := tool.Encode(nil, page)
	tool.Encode(nil, []byte("short"))
	tool.Encode(nil, vectors.Noise(1, 100))
	tool.Encode(nil, make([]byte, 4001))
	tool.Encode(nil, stored)
	tool.Decode(nil, stored)
	tool.Decode(nil, []byte("short"))
	tool.Decode(nil, []byte("\x00\x01\x02\x00\x03"))
	got := map[string]uint64{}
	for name, value := range tool.Statistics().All() {
		if _, isTwice := got[name]; isTwice {
			t.Errorf("%s is there twice", name)
		}
		got[name] = value
	}
	maps.DeleteFunc(got, func(_ string, value uint64) bool { return value == 0 })
	wanted := map[string]uint64{
		"encoded_values_zstd": 1, "encoded_bytes_in_zstd": uint64(len(page)), "encoded_bytes_out_zstd": uint64(len(stored)),
		"encoded_values_none": 4, "encoded_bytes_in_none": uint64(5 + 100 + 4001 + len(stored)), "encoded_bytes_out_none": uint64(5 + 100 + 4001 + len(stored)),
		"decoded_values_zstd": 1, "decoded_bytes_in_zstd": uint64(len(stored)), "decoded_bytes_out_zstd": uint64(len(page)),
		"decoded_values_none": 1, "decoded_bytes_in_none": 5, "decoded_bytes_out_none": 5,
		"skipped_small": 1, "skipped_no_gain": 1, "skipped_large": 1, "skipped_compressed": 1, "decode_failures": 1,
	}
	if !maps.Equal(got, wanted) {
		t.Errorf("counted %v, wanted %v", got, wanted)
	}
	for range 64 {
		tool.Decode(nil, tool.Encode(nil, page))
	}
	if counted := tool.Statistics(); counted.EncodeNanoseconds == 0 || counted.DecodeNanoseconds == 0 {
		t.Error("no time was spent")
	}
}

func TestACodecIsForAnyNumberOfGoroutines(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	for _, options := range []envelope.Options{
		{}, {Backend: envelope.LZ4}, {Dictionaries: envelope.Only(dictionary)},
		{Backend: envelope.LZ4, Dictionaries: envelope.Only(dictionary)},
		{Backend: envelope.LZ4, CompressionLevel: 9, Dictionaries: envelope.Only(dictionary)},
	} {
		tool := codec(t, options)
		var all sync.WaitGroup
		for worker := range 16 {
			all.Add(1)
			go func() {
				defer all.Done()
				for round := range 50 {
					value := bytes.Repeat([]byte(fmt.Sprintf("worker %d, round %d. ", worker, round)), 1+round*worker)
					read, err := tool.Decode(nil, tool.Encode(nil, value))
					if err != nil || !bytes.Equal(read, value) {
						t.Errorf("worker %d, round %d: %v", worker, round, err)
					}
				}
			}()
		}
		all.Wait()
	}
}

func TestAClaimReservesNothing(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	reader := codec(t, envelope.Options{Dictionaries: envelope.Only(dictionary)})
	// Both claim 400 MB, and cannot reach them.
	for name, stored := range map[string][]byte{
		"frame": []byte("\x00\x01\x02\x00\x01\x28\xb5\x2f\xfd\xa0\x00\x84\xd7\x17\x01\x00\x00"),
		"block": blockEnvelope(dictionary.ID(), 400_000_000, helloChecksum, hello...),
	} {
		expectLittleIsAllocated(t, name, reader, stored)
	}
}

func expectLittleIsAllocated(t *testing.T, name string, reader *envelope.Codec, stored []byte) {
	// Enough of them that what a pool makes anew does not count.
	const times = 1000
	taken := allocated(func() {
		for range times {
			if _, err := reader.Decode(nil, stored); err == nil {
				t.Fatal("it was decoded")
			}
		}
	})
	if taken > 10_000*times {
		t.Errorf("%s: %d bytes were allocated for each", name, taken/times)
	}
}

func TestNothingIsAllocatedBesideTheResult(t *testing.T) {
	dictionary := load(t, readReaderVectors(t).Dictionaries["profiles"].Bytes)
	for name, options := range map[string]envelope.Options{
		"zstd": {}, "lz4": {Backend: envelope.LZ4}, "zstd with a dictionary": {Dictionaries: envelope.Only(dictionary)},
		"lz4 with a dictionary":              {Backend: envelope.LZ4, Dictionaries: envelope.Only(dictionary)},
		"lz4 with a dictionary, accelerated": {Backend: envelope.LZ4, CompressionLevel: -9, Dictionaries: envelope.Only(dictionary)},
		"lz4 with a dictionary, level 9":     {Backend: envelope.LZ4, CompressionLevel: 9, Dictionaries: envelope.Only(dictionary)},
	} {
		tool := codec(t, options)
		stored, value, noise := make([]byte, 0, 10_000), make([]byte, 0, 10_000), vectors.Noise(1, 5000)
		allocations := testing.AllocsPerRun(200, func() {
			if _, isEncoded := tool.AppendEnvelope(stored, "user:1", noise); isEncoded {
				t.Fatal("noise was compressed")
			}
			encoded := tool.EncodeFor(stored, "user:1", page)
			if _, err := tool.DecodeFor(context.Background(), value, "user:1", encoded); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 0 && !raceDetector {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}
