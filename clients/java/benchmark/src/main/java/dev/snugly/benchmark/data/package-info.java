/**
 * The values that are measured with.
 *
 * <p>It must not know any client.
 */
package dev.snugly.benchmark.data;
