package dev.snugly.benchmark.link;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Rate of a network.
 *
 * @param name as it was given, such as {@code 100mbit}
 * @param bitsPerSecond in each direction; 0 for no limit
 * @param relayed whether a relay limits it, and not the system
 */
public record Rate(String name, long bitsPerSecond, boolean relayed) {
  /** Straight to the server. */
  public static final Rate DIRECT = new Rate("direct", 0, false);

  private static final Pattern FORM = Pattern.compile("(tc:)?([0-9]{1,6})([kmg])bit");
  private static final Map<String, Long> UNITS =
      Map.of("k", 1_000L, "m", 1_000_000L, "g", 1_000_000_000L);

  /**
   * Returns the rate that a text names.
   *
   * @param text {@code direct}, or a number and {@code kbit}, {@code mbit} or {@code gbit}, behind
   *     {@code tc:} where the system does it already
   * @throws IllegalArgumentException for anything else
   */
  public static Rate parse(String text) {
    String name = text.toLowerCase(Locale.ROOT);
    if (name.equals(DIRECT.name)) {
      return DIRECT;
    }
    Matcher matcher = FORM.matcher(name);
    long rate =
        matcher.matches() ? Long.parseLong(matcher.group(2)) * UNITS.get(matcher.group(3)) : 0;
    if (rate == 0) {
      throw new IllegalArgumentException(
          "'" + text + "' is no link: give direct, or a rate such as 100mbit or 1gbit");
    }
    return new Rate(name, rate, matcher.group(1) == null);
  }

  /** Whether it is slower than what is there anyway. */
  public boolean isLimited() {
    return bitsPerSecond > 0;
  }

  /** Returns how long bytes take, in nanoseconds. */
  long nanoseconds(int bytes) {
    return bytes * 8_000_000_000L / bitsPerSecond;
  }

  @Override
  public String toString() {
    return name;
  }
}
