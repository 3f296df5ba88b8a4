package dev.snugly.core.commands;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** One command against its row's pattern, from left to right, without going back. */
final class Match {
  /** The arguments do not follow the pattern; the server will say what is wrong with them. */
  static final class Misfit extends Exception {
    private static final long serialVersionUID = 1L;

    private Misfit() {
      super("the arguments do not follow the pattern", null, false, false);
    }
  }

  private static final Pattern ID = Pattern.compile("\\*|[0-9]+(-([0-9]+|\\*))?");
  private static final Pattern COUNT = Pattern.compile("[0-9]{1,9}");

  /** Options and numbers are shorter, in bytes. */
  private static final int LONGEST_WORD = 64;

  private final List<byte[]> words;
  private final Map<String, Items> options;
  private final Found found = new Found();
  private int at = 1;

  private Match(List<byte[]> words, Map<String, Items> options) {
    this.words = words;
    this.options = options;
  }

  /** Positions that the items find in a command; none if they do not fit. */
  static Found of(Items items, Map<String, Items> options, List<byte[]> words) {
    Match match = new Match(words, options);
    try {
      match.all(items);
    } catch (Misfit misfit) {
      return Found.NOTHING;
    }
    return match.at == words.size() ? match.found : Found.NOTHING;
  }

  private void all(Items items) throws Misfit {
    for (Items.Item item : items.items()) {
      one(item);
    }
  }

  private void one(Items.Item item) throws Misfit {
    switch (item.kind()) {
      case KEY -> found.keys.add(take());
      case VALUE -> {
        found.values.add(take());
        found.keysOfValues.add(found.keys.get(found.keys.size() - 1));
      }
      case COMPARED -> found.compared.add(take());
      case FIELD, WORD -> take();
      case ID -> {
        if (!ID.matcher(word(take())).matches()) {
          throw new Misfit();
        }
      }
      case REST -> at = words.size();
      case OPTIONS -> {
        while (option()) {
          // The next one.
        }
      }
      case TAIL -> {
        while (at < words.size()) {
          if (!option()) {
            take();
          }
        }
      }
      case MAYBE -> maybe(item.words());
      case REPEAT -> repeat(item.group());
      case COUNTED -> counted(item.group());
    }
  }

  private int take() throws Misfit {
    if (at >= words.size()) {
      throw new Misfit();
    }
    return at++;
  }

  private boolean option() throws Misfit {
    if (at >= words.size()) {
      return false;
    }
    String word = word(at).toUpperCase(Locale.ROOT);
    Items own = options.get(word);
    if (own == null) {
      return false;
    }
    take();
    found.options.add(word);
    all(own);
    return true;
  }

  private void maybe(Set<String> some) throws Misfit {
    if (at < words.size() && some.contains(word(at).toUpperCase(Locale.ROOT))) {
      take();
    }
  }

  /** The group as often as it fits, at least once. */
  private void repeat(Items group) throws Misfit {
    all(group);
    while (at < words.size()) {
      int before = at;
      try {
        all(group);
      } catch (Misfit misfit) {
        at = before;
        return;
      }
    }
  }

  private void counted(Items group) throws Misfit {
    String count = word(take());
    if (!COUNT.matcher(count).matches()) {
      throw new Misfit();
    }
    for (int left = Integer.parseInt(count); left > 0; left--) {
      all(group);
    }
  }

  /** An argument as the table compares it; empty for what is too long to be a word. */
  private String word(int position) {
    byte[] word = words.get(position);
    return word.length > LONGEST_WORD ? "" : new String(word, StandardCharsets.ISO_8859_1);
  }
}
