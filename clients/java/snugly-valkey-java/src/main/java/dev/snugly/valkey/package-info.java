/**
 * Compression in clients of valkey-java: {@link dev.snugly.valkey.SnuglyJedis} is one, for a
 * server, a cluster, or servers that sentinels watch.
 *
 * <p>valkey-java is an earlier Jedis under other names, so the classes that know commands,
 * pipelines and transactions are made from those of {@code snugly-jedis} when this is built.
 */
package dev.snugly.valkey;
