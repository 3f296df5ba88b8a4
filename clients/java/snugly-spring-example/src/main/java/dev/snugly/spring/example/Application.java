package dev.snugly.spring.example;

import dev.snugly.core.Codec;
import dev.snugly.core.Counter;
import dev.snugly.core.Statistics;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.Bean;

/**
 * Asks for some reports, and tells what compression made of them: of those that were made, and of
 * those that an earlier run had left in the cache.
 */
@SpringBootApplication
@EnableCaching
public class Application {
  /**
   * Starts it.
   *
   * @param arguments such as {@code --spring.data.redis.port=7684}
   */
  public static void main(String[] arguments) {
    SpringApplication.run(Application.class, arguments).close();
  }

  @Bean
  CommandLineRunner run(Reports reports, Codec codec) {
    return arguments -> {
      for (int year = 2001; year <= 2020; year++) {
        reports.ofYear(year);
      }
      Statistics counted = codec.statistics();
      System.out.printf(
          "20 reports, %d of them made: %,d bytes, of which %,d are stored%n",
          reports.made(),
          counted.total(Counter.ENCODED_BYTES_IN) + counted.total(Counter.DECODED_BYTES_OUT),
          counted.total(Counter.ENCODED_BYTES_OUT) + counted.total(Counter.DECODED_BYTES_IN));
    };
  }
}
