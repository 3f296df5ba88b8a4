/**
 * Compression under Lettuce: values are encoded before a command is sent and restored when its
 * reply has come, by the command table.
 *
 * <p>{@code Commands} says what becomes of a command, {@code CompressedCommand} and {@code
 * ReplyRecorder} do it, and the connections put it in front of Lettuce's own. Each client has
 * {@code Threads} for what must not hold up the event loop, and a {@code DictionaryConnection}. It
 * knows Lettuce; what an envelope is, what the commands are and how dictionaries are kept is in
 * {@code dev.snugly.core}.
 */
package dev.snugly.lettuce;
