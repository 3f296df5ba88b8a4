package dev.snugly.spring.example;

import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.stereotype.Service;

/** Makes reports; each is made once, and then comes from the cache. */
@Service
public class Reports {
  private final AtomicInteger made = new AtomicInteger();

  /**
   * Makes a report.
   *
   * @param year which one
   * @return its text
   */
  @Cacheable("reports")
  public String ofYear(int year) {
    made.incrementAndGet();
    StringBuilder report = new StringBuilder();
    for (int month = 1; month <= 12; month++) {
      report.append(
          "{\"year\": %d, \"month\": %d, \"visits\": %d}%n"
              .formatted(year, month, (year * 31 + month * 17) % 1000));
    }
    return report.toString();
  }

  /** Returns how many reports were made. */
  public int made() {
    return made.get();
  }
}
