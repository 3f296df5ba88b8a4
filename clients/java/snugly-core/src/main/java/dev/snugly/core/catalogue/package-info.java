/**
 * The dictionaries beside the data of one client's server ({@code spec/dictionaries.md}): how they
 * are found, used and put back.
 *
 * <p>{@link dev.snugly.core.catalogue.Catalogue} is the document, and a {@code DictionaryCache} has
 * the dictionaries at hand, in a snapshot that codecs read without a lock. A {@code
 * DictionaryManager} has the rules of what is asked of the server, and when, as tasks that do no
 * I/O: look-ups and maintenance. {@link dev.snugly.core.catalogue.ManagedDictionaries} has them
 * done, by a {@code FetchLoop} and a {@code RefreshLoop}. How commands get to the server is for
 * client libraries to say, by {@link dev.snugly.core.catalogue.DictionaryServer}.
 */
package dev.snugly.core.catalogue;
