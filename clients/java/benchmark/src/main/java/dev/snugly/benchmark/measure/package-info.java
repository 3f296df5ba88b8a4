/**
 * Workloads of the clients, their order, and the measurements.
 *
 * <p>It must not know how results are told, nor what is aimed at.
 */
package dev.snugly.benchmark.measure;
