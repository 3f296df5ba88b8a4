// Package comparison measures ways of using a cache beside each other: SET and GET of the same JSON, by client libraries,
// with compression and without.
//
// It knows go-redis, with the hook and without, as every comparison has it. Other libraries are handed in.
package comparison
