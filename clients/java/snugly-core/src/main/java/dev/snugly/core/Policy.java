package dev.snugly.core;

/**
 * Whether to compress a value: what is not worth an attempt. One thread at a time holds it.
 *
 * <p>Short values are compressed without further thought as long as that succeeds. Once it fails
 * for values of some length (to the power of two), those are looked at first ({@link Spread}), as
 * long values always are, and attempts on those that look like the failed ones back off
 * exponentially. They never stop: a random block that repeats itself looks random and is
 * compressible, and what a cache holds changes.
 */
final class Policy {
  /** Raises suspicion by this much with each failure, up to the most. */
  private static final int SUSPICION_STEP = 4;

  private static final int MAX_SUSPICION = 32;

  /** From this length on a look costs a hundredth of compressing text, and every value gets one. */
  private static final int ALWAYS_LOOKED_AT = 16 << 10;

  /** Failures in a row that are taken for chance, where values do not look random. */
  private static final int PATIENCE = 8;

  /** More are not counted: attempts become no rarer. */
  private static final int MAX_FAILURES = 255;

  /** Powers of two up to the longest value, without and with a dictionary. */
  private static final int LENGTHS = Integer.SIZE - 1;

  private final LengthClass[] classes = new LengthClass[2 * LENGTHS];
  private final byte[] seen = new byte[Spread.SEEN];

  /** History of the value that was considered last. */
  private LengthClass considered;

  /** Looks of it, or null if it was not looked at. */
  private Spread spread;

  /** Verdicts on a value. */
  enum Verdict {
    /** To be tried, and reported. */
    TRY(null),
    /** The same, where a failure is likely, so that a fast level should go first. */
    DOUBTFUL(null),
    /** To be left alone: in a compressed format, or random by its looks. */
    COMPRESSED(Counter.SKIPPED_COMPRESSED),
    /** To be left alone: values like it have gained nothing. */
    NO_GAIN(Counter.SKIPPED_NO_GAIN);

    /** Counter of such values, if they are left alone; else null. */
    final Counter skipped;

    Verdict(Counter skipped) {
      this.skipped = skipped;
    }
  }

  /** Memory of values of similar length. */
  private static final class LengthClass {
    /** Number of successes until values are no longer looked at before an attempt. */
    private int suspicion;

    private final Backoff even = new Backoff();
    private final Backoff mixed = new Backoff();
    private final Backoff skewed = new Backoff();

    Backoff backoff(Spread spread) {
      return switch (spread) {
        case EVEN -> even;
        case MIXED -> mixed;
        case SKEWED -> skewed;
      };
    }
  }

  private static final class Backoff {
    /** Failed attempts since the last one that succeeded. */
    private int failures;

    /** Values still to be skipped before the next attempt. */
    private int skip;

    void succeeded() {
      failures = 0;
      skip = 0;
    }

    void failed(Spread spread) {
      failures = Math.min(failures + 1, MAX_FAILURES);
      int impatience = Math.max(failures - PATIENCE, 0);
      skip =
          switch (spread) {
            // Skips 4, 16, 64, then always 256: less than 1 % of the cost of trying each time.
            case EVEN -> 1 << Math.min(2 * failures, 8);
            // These mostly compress, or belong to a mixture of which some do: patient, and at worst
            // one attempt in 64 (base64 and LZ4, say) or in 16.
            case MIXED -> (1 << Math.min(impatience, 6)) - 1;
            case SKEWED -> (1 << Math.min(impatience, 4)) - 1;
          };
    }
  }

  /**
   * Decides the treatment of a value of one byte or more.
   *
   * @param hasDictionary whether it is to be compressed with a dictionary
   */
  Verdict consider(Bytes value, boolean hasDictionary) {
    int size = value.size();
    considered = classOf(size, hasDictionary);
    spread = null;
    boolean hasMagic = Magic.matches(value);
    if (considered.suspicion == 0 && !hasMagic && size < ALWAYS_LOOKED_AT) {
      return Verdict.TRY;
    }
    spread = Spread.of(value, seen);
    if (hasMagic && spread != Spread.SKEWED) {
      return Verdict.COMPRESSED;
    }
    Backoff backoff = considered.backoff(spread);
    if (backoff.skip > 0) {
      backoff.skip--;
      return spread == Spread.EVEN ? Verdict.COMPRESSED : Verdict.NO_GAIN;
    }
    return spread == Spread.EVEN && backoff.failures > 0 ? Verdict.DOUBTFUL : Verdict.TRY;
  }

  private LengthClass classOf(int size, boolean hasDictionary) {
    int log = LENGTHS - Integer.numberOfLeadingZeros(size);
    int place = hasDictionary ? LENGTHS + log : log;
    if (classes[place] == null) {
      classes[place] = new LengthClass();
    }
    return classes[place];
  }

  /** Notes what came of an attempt on the value that was considered last. */
  void report(boolean gained) {
    considered.suspicion =
        gained
            ? Math.max(considered.suspicion - 1, 0)
            : Math.min(considered.suspicion + SUSPICION_STEP, MAX_SUSPICION);
    if (spread == null) {
      return;
    }
    Backoff backoff = considered.backoff(spread);
    if (gained) {
      backoff.succeeded();
    } else {
      backoff.failed(spread);
    }
  }
}
