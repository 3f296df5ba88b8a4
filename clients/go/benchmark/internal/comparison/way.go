//go:build unix

package comparison

import "context"

// Client is what is measured of a client library. It is for any number of goroutines.
type Client interface {
	Set(ctx context.Context, key, value string) error
	Get(ctx context.Context, key string) (string, error)
	Close()
}

// Name says which way it is.
type Name struct {
	Library     string
	Compression string
}

func (n Name) String() string { return n.Library + " " + n.Compression }

// Bare is the compression of a client that knows nothing of it.
const Bare = "bare"

// Way is one way of using a cache.
type Way struct {
	Name
	Client Client
}

// Ratio is a column of the table: the rate of a way by that of another one.
type Ratio struct {
	Title string
	// Of gives the other way. The column is empty where that is the same, or is not measured.
	Of func(Name) Name
}

// OfBare is the ratio to the same library without compression.
var OfBare = Ratio{"of bare", func(name Name) Name { return Name{name.Library, Bare} }}
