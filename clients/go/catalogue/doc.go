// Package catalogue has the dictionaries that lie beside the data of a server (spec/dictionaries.md): it finds the ones
// that values are written with, fetches those that stored values name, and keeps them from being evicted.
//
// It has the goroutines, the clock and the folder of copies; what is asked, and when, is up to internal/dictionaries. How
// commands get to a server is up to a [Server], which the packages for client libraries have; what a dictionary does to
// values is for package envelope.
package catalogue
