package compression

import (
	"slices"

	"snugly.dev/go/catalogue"
	"snugly.dev/go/envelope"
)

// Compressor is the compression of one client, for any number of goroutines.
type Compressor struct {
	types  []ValueType
	codec  *envelope.Codec
	keeper *catalogue.Keeper
}

// New makes the compressor of a client whose dictionaries are in a server. It returns an *envelope.OptionError for an
// option that cannot be. Applications use goredis.Compress or valkeygo.Compress, which do this.
func New(server catalogue.Server, options Options) (*Compressor, error) {
	types, err := options.valueTypes()
	if err != nil {
		return nil, err
	}
	if err := options.checkDictionaries(); err != nil {
		return nil, err
	}
	keeper, err := catalogue.NewKeeper(server, options.forCatalogue())
	if err != nil {
		return nil, err
	}
	codec, err := envelope.New(options.forEnvelopes(keeper))
	if err != nil {
		return nil, err
	}
	return &Compressor{types, codec, keeper}, nil
}

// Codec encodes and decodes values as the client does.
func (c *Compressor) Codec() *envelope.Codec { return c.codec }

// Dictionaries has the dictionaries of the client.
func (c *Compressor) Dictionaries() *catalogue.Keeper { return c.keeper }

// ValueTypes is whose values are compressed.
func (c *Compressor) ValueTypes() []ValueType { return slices.Clone(c.types) }

// Statistics is what was counted since the client compresses.
func (c *Compressor) Statistics() envelope.Statistics {
	counted := c.codec.Statistics()
	counted.DictionariesFetched, counted.DictionariesPutBack = c.keeper.Fetched(), c.keeper.PutBack()
	return counted
}

// Close ends looking after dictionaries. The client goes on compressing; it is to be closed as ever.
func (c *Compressor) Close() { c.keeper.Close() }
