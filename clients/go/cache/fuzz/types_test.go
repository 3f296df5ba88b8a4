package fuzz

//go:generate go tool msgp -o types_gen_test.go -tests=false -io=false

// Document has a field of each kind that claims a length or elements.
type Document struct {
	ID      int64             `msg:"id"`
	Name    string            `msg:"name"`
	Picture []byte            `msg:"picture,zerocopy"`
	Tags    []string          `msg:"tags"`
	Notes   map[string]string `msg:"notes"`
	Next    *Document         `msg:"next"`
	Any     any               `msg:"any"`
}

// Documents is what is decoded.
type Documents []Document
