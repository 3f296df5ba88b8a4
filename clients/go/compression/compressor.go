package compression

import (
	"fmt"
	"slices"
	"time"

	"snugly.dev/go/catalogue"
	"snugly.dev/go/envelope"
)

// Compressor is the compression of one client, for any number of goroutines.
type Compressor struct {
	types   []ValueType
	codec   *envelope.Codec
	manager *catalogue.DictionaryManager
	budget  envelope.Budget // Of each reply.
	missed  *missedLog      // nil where the application sees the errors.
	// longestWait is the time that the dictionaries of one reply are waited for; 0 where the manager alone says that.
	longestWait time.Duration
	tooLate     error // The reason when it is over.
}

// New makes the compressor of a client whose dictionaries are in a server. It returns an *envelope.OptionError for an
// option that cannot be. Applications use goredis.Compress or valkeygo.Compress, which do this.
func New(server catalogue.Server, options Options) (*Compressor, error) {
	types, err := options.valueTypes()
	if err != nil {
		return nil, err
	}
	if err := options.checkDatabase(); err != nil {
		return nil, err
	}
	budget, err := options.budget()
	if err != nil {
		return nil, err
	}
	manager, err := catalogue.NewDictionaryManager(server, options.forCatalogue())
	if err != nil {
		return nil, err
	}
	codec, err := envelope.New(options.forEnvelopes(manager))
	if err != nil {
		return nil, err
	}
	made := &Compressor{types: types, codec: codec, manager: manager, budget: budget, longestWait: catalogue.ReplyTimeout(server)}
	made.tooLate = fmt.Errorf("the %v are over in which the client wants a reply", made.longestWait)
	if options.OnUndecodable == envelope.Miss {
		made.missed = newMissedLog(options.Logger)
	}
	return made, nil
}

// Codec encodes and decodes values as the client does.
func (c *Compressor) Codec() *envelope.Codec { return c.codec }

// Dictionaries has the dictionaries of the client.
func (c *Compressor) Dictionaries() *catalogue.DictionaryManager { return c.manager }

// ValueTypes are those whose values are compressed.
func (c *Compressor) ValueTypes() []ValueType { return slices.Clone(c.types) }

// Statistics are the counts since the client compresses.
func (c *Compressor) Statistics() envelope.Statistics {
	counted := c.codec.Statistics()
	counted.DictionariesFetched, counted.DictionariesPutBack = c.manager.Fetched(), c.manager.PutBack()
	counted.DictionariesMended = c.manager.Mended()
	return counted
}

// Close ends the maintenance of dictionaries. The client goes on compressing; it is to be closed as ever.
func (c *Compressor) Close() { c.manager.Close() }
