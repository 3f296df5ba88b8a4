/**
 * Compression under Spring: serializers for Spring Data Redis and Spring Cache, connections of
 * Lettuce that compress by commands, and the auto-configuration of both.
 *
 * <p>It knows Spring; what is done with a value is in {@code dev.snugly.core}, and what with a
 * command in {@code dev.snugly.lettuce}.
 */
package dev.snugly.spring;
