// Package compression is what a client does with commands and values, whatever its library: its options, and the
// compressor that joins the command table, a codec and the dictionaries beside the data.
//
// The packages goredis and valkeygo put a [Compressor] into clients; applications meet [Options] and the errors here.
// The package knows no client library and no socket.
package compression
