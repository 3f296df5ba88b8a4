/**
 * What encoding and decoding cost, beside the bare libraries with contexts that are used again,
 * Java's GZIP, and a copy.
 */
package dev.snugly.benchmark;
