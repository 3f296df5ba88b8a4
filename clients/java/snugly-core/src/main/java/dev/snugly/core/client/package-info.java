/**
 * What every adapter of a client library needs: a codec, the command table and a keeper of
 * dictionaries, put together.
 *
 * <p>It knows commands and replies as bytes. It must not know any client library.
 */
package dev.snugly.core.client;
