/**
 * A program that measures clients for Java beside each other, with compression and without.
 *
 * <p>{@link dev.snugly.benchmark.Options} reads what is asked for, {@code client} opens the
 * libraries, {@code data} has the values, {@code link} the networks that can be put in between,
 * {@code measure} asks and counts, {@code report} tells what was found and whether that was aimed
 * at. {@code codec} stands by itself: what the core costs over the bare library.
 */
package dev.snugly.benchmark;
