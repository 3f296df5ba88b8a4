package envelope

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

const (
	dictionaryMagic = "\x37\xa4\x30\xec"
	// The content, of which the ID is made, starts behind magic number and ID.
	dictionaryContent = 8
	// MaxDictionaryBytes is the longest dictionary that is accepted, in bytes.
	MaxDictionaryBytes = 1 << 20

	// RFC 8878 reserves the IDs below and from 2^31 on.
	leastDictionaryID = 32768
	dictionaryIDs     = 1<<31 - leastDictionaryID
)

// Dictionary has what values that are alike share (spec/dictionaries.md), loaded. It is for any number of goroutines.
type Dictionary struct {
	bytes       []byte
	id          uint32
	decoders    *decoders
	compressors zstdCompressors
	blocks      *blockCompressors
}

// LoadDictionary loads a full zstd dictionary, of which it keeps a copy. It returns a *DictionaryError for what is none,
// for one over MaxDictionaryBytes, and for one whose ID is not that of its content.
func LoadDictionary(content []byte) (*Dictionary, error) {
	switch {
	case len(content) < dictionaryContent || string(content[:len(dictionaryMagic)]) != dictionaryMagic:
		return nil, &DictionaryError{"not_a_dictionary", fmt.Sprintf("%d bytes that do not start as a zstd dictionary does", len(content))}
	case len(content) > MaxDictionaryBytes:
		return nil, &DictionaryError{"too_large", fmt.Sprintf("a dictionary of %d bytes: at most %d are accepted", len(content), MaxDictionaryBytes)}
	}
	id, own := binary.LittleEndian.Uint32(content[len(dictionaryMagic):]), DictionaryID(content[dictionaryContent:])
	if id != own {
		return nil, &DictionaryError{"wrong_id", fmt.Sprintf("a dictionary that says %d, while its content has the ID %d: it is damaged, or of another program", id, own)}
	}
	kept := bytes.Clone(content)
	loaded := &Dictionary{bytes: kept, id: id, decoders: newDecoders(zstd.WithDecoderDicts(kept))}
	loaded.blocks = newBlockCompressors(loaded.window())
	if _, err := loaded.decoders.any(); err != nil {
		return nil, &DictionaryError{"not_a_dictionary", fmt.Sprintf("a dictionary that cannot be loaded: %v", err)}
	}
	return loaded, nil
}

// DictionaryID is the ID of a dictionary with this content, which is all that follows magic number and ID.
func DictionaryID(content []byte) uint32 {
	return leastDictionaryID + uint32(xxhash.Sum64(content)%dictionaryIDs)
}

// ID is the name of the dictionary in envelopes. It is that of its content.
func (d *Dictionary) ID() uint32 { return d.id }

// Bytes is the dictionary as it is stored. It must not be changed.
func (d *Dictionary) Bytes() []byte { return d.bytes }

// Needs is the ID of the dictionary that an envelope is read with; 0 if it needs none, is no envelope, or is one that no
// dictionary makes readable.
func (c *Codec) Needs(stored []byte) uint32 {
	if !Is(stored) {
		return 0
	}
	row := backendNumbered(stored[len(magic)])
	if row == nil || !row.needsDictionary || !row.isStarted(stored[HeaderLen:], c.options.MaxDecompressedSize) {
		return 0
	}
	header, _ := Inspect(stored)
	return header.Dictionary
}

// Dictionaries is the source of a codec's dictionaries. All methods are for any number of goroutines.
type Dictionaries interface {
	// For returns the dictionary that a value of this key is written with, nil for none. It is asked for each value that
	// is compressed, and must not wait for anything.
	For(key string) *Dictionary
	// AtHand returns the dictionary of this ID, nil if it is not at hand. It must not wait for anything.
	AtHand(id uint32) *Dictionary
	// Fetch gets a dictionary that is not at hand, and may take as long as ctx allows. It returns nil if there is none.
	Fetch(ctx context.Context, id uint32) (*Dictionary, error)
}

// Only has one dictionary, whatever the key; nil for none.
func Only(dictionary *Dictionary) Dictionaries { return only{dictionary} }

type only struct{ dictionary *Dictionary }

func (o only) For(string) *Dictionary { return o.dictionary }

func (o only) AtHand(id uint32) *Dictionary {
	if o.dictionary == nil || o.dictionary.id != id {
		return nil
	}
	return o.dictionary
}

func (o only) Fetch(context.Context, uint32) (*Dictionary, error) { return nil, nil }
