/**
 * The command table ({@code spec/commands.md}): where a command has values, where its reply has
 * them, and what is refused.
 *
 * <p>It knows the table's language, and no command. What encoding and decoding a value means is
 * passed in; commands and replies are what any client library has, as bytes.
 */
package dev.snugly.core.commands;
