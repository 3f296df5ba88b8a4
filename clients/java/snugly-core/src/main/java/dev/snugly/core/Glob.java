package dev.snugly.core;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** A pattern of KEYS and SCAN, on bytes, as Valkey reads it: {@code * ? [a-c] [^a] \x}. */
public final class Glob {
  private final byte[] pattern;

  /**
   * A pattern of keys.
   *
   * @param pattern text, whose bytes in UTF-8 are compared
   */
  public Glob(String pattern) {
    this.pattern = pattern.getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Makes several patterns.
   *
   * @param patterns the text of each
   */
  public static List<Glob> all(List<String> patterns) {
    return patterns.stream().map(Glob::new).toList();
  }

  /**
   * Whether one of some patterns matches a key.
   *
   * @param globs the patterns
   * @param key any bytes
   */
  public static boolean anyMatches(List<Glob> globs, byte[] key) {
    for (Glob glob : globs) {
      if (glob.matches(key)) {
        return true;
      }
    }
    return false;
  }

  /**
   * Whether a key matches. Takes time proportional to the product of the two lengths at worst: on a
   * mismatch only the last star is reconsidered, since that can match whatever an earlier one can.
   *
   * @param key any bytes
   */
  public boolean matches(byte[] key) {
    if (key.length == 0) {
      // Only the pattern that stands for all keys matches the empty one, as in Valkey: ** does not.
      return pattern.length == 0 || (pattern.length == 1 && pattern[0] == '*');
    }
    int p = 0;
    int t = 0;
    int afterStar = -1;
    int starred = 0;
    while (t < key.length) {
      if (p < pattern.length && pattern[p] == '*') {
        p++;
        afterStar = p;
        starred = t;
        continue;
      }
      int next = p < pattern.length ? after(p, key[t]) : -1;
      if (next >= 0) {
        p = next;
        t++;
      } else if (afterStar >= 0) {
        starred++;
        p = afterStar;
        t = starred;
      } else {
        return false;
      }
    }
    while (p < pattern.length && pattern[p] == '*') {
      p++;
    }
    return p == pattern.length;
  }

  /** Position of the next element if the one at {@code p} matches the byte, else -1. */
  private int after(int p, byte each) {
    return switch (pattern[p]) {
      case '?' -> p + 1;
      case '[' -> afterSet(p + 1, Byte.toUnsignedInt(each));
      case '\\' -> {
        boolean isEscape = p + 1 < pattern.length;
        int at = isEscape ? p + 1 : p;
        yield pattern[at] == each ? at + 1 : -1;
      }
      default -> pattern[p] == each ? p + 1 : -1;
    };
  }

  /** The same for a set that begins at {@code p}. One that is not closed ends with the pattern. */
  private int afterSet(int p, int each) {
    boolean isNegated = p < pattern.length && pattern[p] == '^';
    int at = isNegated ? p + 1 : p;
    boolean isMatched = false;
    while (at < pattern.length && pattern[at] != ']') {
      if (pattern[at] == '\\' && at + 1 < pattern.length) {
        isMatched |= unsigned(at + 1) == each;
        at += 2;
      } else if (at + 2 < pattern.length && pattern[at + 1] == '-') {
        int low = Math.min(unsigned(at), unsigned(at + 2));
        int high = Math.max(unsigned(at), unsigned(at + 2));
        isMatched |= low <= each && each <= high;
        at += 3;
      } else {
        isMatched |= unsigned(at) == each;
        at++;
      }
    }
    return isMatched != isNegated ? Math.min(at + 1, pattern.length) : -1;
  }

  private int unsigned(int at) {
    return Byte.toUnsignedInt(pattern[at]);
  }
}
