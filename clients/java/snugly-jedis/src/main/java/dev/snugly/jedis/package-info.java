/**
 * Compression in clients of Jedis: {@link dev.snugly.jedis.SnuglyRedisClient}, {@link
 * dev.snugly.jedis.SnuglyRedisClusterClient} and {@link dev.snugly.jedis.SnuglyRedisSentinelClient}
 * are as Jedis's own clients.
 *
 * <p>It knows Jedis's commands, executors, pipelines and transactions. Which arguments are values
 * is for the command table to say, and how they are encoded for the codec.
 */
package dev.snugly.jedis;
