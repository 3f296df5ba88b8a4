package dev.snugly.core.commands;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Positions that a pattern found in a command. They count from the command's name at 0. */
final class Found {
  static final Found NOTHING = new Found();

  final List<Integer> keys = new ArrayList<>();

  /** Positions of values. */
  final List<Integer> values = new ArrayList<>();

  /** Position of its key, for each value. */
  final List<Integer> keysOfValues = new ArrayList<>();

  final List<Integer> compared = new ArrayList<>();

  /** The options that were given. */
  final Set<String> options = new HashSet<>();

  boolean hasOneOf(Set<String> some) {
    if (options.isEmpty()) {
      return false;
    }
    for (String option : some) {
      if (options.contains(option)) {
        return true;
      }
    }
    return false;
  }
}
