/**
 * Values to envelopes and back ({@code spec/envelope.md}), for any client of Valkey and Redis.
 *
 * <p>It knows bytes, settings, dictionaries and counters. It must not know commands, catalogues,
 * sockets or any client library.
 */
package dev.snugly.core;
