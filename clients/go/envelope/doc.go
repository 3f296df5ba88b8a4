// Package envelope turns values into what a compressing client stores, and back.
//
// An envelope is five bytes in front of a compressed value; the format is that of the specification
// (spec/envelope.md), which Valkey GLIDE and snugly's clients for other languages read and write, too. A [Codec]
// encodes and decodes under one set of [Options], for any number of goroutines.
//
// Values that do not shrink are soon tried only rarely: those that start as compressed files do, that look random, or
// that are like others which gained nothing. A [Codec] remembers that for itself and never stops trying.
//
// The package knows bytes, and of dictionaries what they are. It knows no server, no command and no client library:
// which arguments are values, and where dictionaries come from, is for others.
package envelope
