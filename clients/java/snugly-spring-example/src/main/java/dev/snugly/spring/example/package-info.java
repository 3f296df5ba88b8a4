/** An application of Spring Boot whose cache is compressed: reports that take long to make. */
package dev.snugly.spring.example;
