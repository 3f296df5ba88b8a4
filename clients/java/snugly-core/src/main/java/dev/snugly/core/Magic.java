package dev.snugly.core;

import java.util.List;

/**
 * The magic number of a format that is compressed already.
 *
 * @param offset where it is in a value
 * @param bytes what is there, a byte in each character
 */
record Magic(int offset, String bytes) {
  static final List<Magic> TABLE =
      List.of(
          magic("\u001f\u008b\b"), // gzip (RFC 1952)
          magic("(\u00b5/\u00fd"), // zstd (RFC 8878)
          magic("\u0004\"M\u0018"), // LZ4 frame
          magic("\u00fd7zXZ\0"), // xz
          magic("BZh"), // bzip2
          magic("7z\u00bc\u00af'\u001c"), // 7-Zip
          magic("PK\u0003\u0004"), // ZIP, and what is made of it: docx, jar, apk
          magic("Rar!\u001a\u0007"), // RAR
          magic("\u00ff\u0006\0\0sNaPpY"), // framed Snappy
          magic("\u0089PNG\r\n\u001a\n"), // PNG
          magic("\u00ff\u00d8\u00ff"), // JPEG
          magic("GIF8"), // GIF
          new Magic(8, "WEBP"), // WebP
          new Magic(4, "ftyp"), // MP4, AVIF, HEIC
          magic("\u00ff\n"), // JPEG XL
          magic("\u001aE\u00df\u00a3"), // WebM, Matroska
          magic("OggS"), // Ogg: Vorbis, Opus
          magic("fLaC"), // FLAC
          magic("ID3"), // MP3
          magic("wOF2"), // WOFF2
          magic("wOFF")); // WOFF

  /**
   * Whether a value with this first byte can have a magic number: one look for the JSON and HTML of
   * every day.
   */
  private static final boolean[] FIRST_BYTES = new boolean[256];

  static {
    FIRST_BYTES['R'] = true; // RIFF, before WEBP
    FIRST_BYTES[0] = true; // the box length before ftyp
    for (Magic magic : TABLE) {
      if (magic.offset == 0) {
        FIRST_BYTES[magic.bytes.charAt(0)] = true;
      }
    }
  }

  private static Magic magic(String bytes) {
    return new Magic(0, bytes);
  }

  /**
   * Whether the value starts as a compressed format does. Text can do so too: the caller looks at
   * more of it.
   */
  static boolean matches(Bytes value) {
    return value.size() > 0 && FIRST_BYTES[value.get(value.start)] && isInTable(value);
  }

  private static boolean isInTable(Bytes value) {
    for (Magic magic : TABLE) {
      if (magic.isIn(value)) {
        return true;
      }
    }
    return false;
  }

  private boolean isIn(Bytes value) {
    if (value.size() < offset + bytes.length()) {
      return false;
    }
    for (int at = 0; at < bytes.length(); at++) {
      if (value.get(value.start + offset + at) != bytes.charAt(at)) {
        return false;
      }
    }
    return true;
  }
}
