/**
 * Reports of the results: for people, for programs, and beside the aims.
 *
 * <p>It must not know how anything was measured.
 */
package dev.snugly.benchmark.report;
