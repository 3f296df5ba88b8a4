// Package compression is what a client does with commands and values, whatever its library: its options, and the
// compressor that joins a codec and the dictionaries beside the data.
//
// The packages goredis and valkeygo put a [Compressor] into clients; applications meet [Options] and the errors here.
// The package knows no client library, no command and no socket.
package compression
