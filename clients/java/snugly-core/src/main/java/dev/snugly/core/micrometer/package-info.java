/**
 * A codec's counters as meters of Micrometer, which is needed for this package only.
 *
 * <p>It knows counters and meters, and no values.
 */
package dev.snugly.core.micrometer;
