/**
 * The libraries that are measured, each behind the same two commands.
 *
 * <p>It must not know what is measured, nor with which values.
 */
package dev.snugly.benchmark.client;
