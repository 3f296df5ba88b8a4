/**
 * What was found: for people, for programs, and beside what was aimed at.
 *
 * <p>It must not know how anything was measured.
 */
package dev.snugly.benchmark.report;
