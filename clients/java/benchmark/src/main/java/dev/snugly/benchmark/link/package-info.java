/**
 * Networks slower than loopback, on loopback.
 *
 * <p>It knows bytes and rates, and nothing of clients, servers or what is measured.
 */
package dev.snugly.benchmark.link;
