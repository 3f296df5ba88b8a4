/**
 * Parts of every adapter of a client library: a codec, the command table and its dictionaries, put
 * together.
 *
 * <p>It knows commands and replies as bytes. It must not know any client library.
 */
package dev.snugly.core.client;
