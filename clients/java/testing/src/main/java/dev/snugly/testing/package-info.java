/**
 * Common parts of the other modules' tests: the vectors of the specification, and real servers.
 *
 * <p>It must not know anything of what is tested.
 */
package dev.snugly.testing;
