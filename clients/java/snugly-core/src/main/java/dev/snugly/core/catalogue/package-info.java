/**
 * The dictionaries beside the data of one client's server ({@code spec/dictionaries.md}): how they
 * are found, used and put back.
 *
 * <p>{@link dev.snugly.core.catalogue.Catalogue} is the document, and what is at hand is a picture
 * that codecs read without a lock. {@code Upkeep} says what is asked of the server, and {@link
 * dev.snugly.core.catalogue.Keeper} who asks, and when. How a question gets to the server is for
 * client libraries to say, by {@link dev.snugly.core.catalogue.DictionaryServer}.
 */
package dev.snugly.core.catalogue;
