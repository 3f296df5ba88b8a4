/**
 * Cost of encoding and decoding, beside the bare libraries with contexts that are used again,
 * Java's GZIP, and a copy: for JMH.
 *
 * <p>It must not know any client or server.
 */
package dev.snugly.benchmark.codec;
