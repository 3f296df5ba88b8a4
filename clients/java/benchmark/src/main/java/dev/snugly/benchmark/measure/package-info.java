/**
 * What is asked of the clients, in which order, and what is counted.
 *
 * <p>It must not know how results are told, nor what is aimed at.
 */
package dev.snugly.benchmark.measure;
