package dev.snugly.core.catalogue;

import dev.snugly.core.Dictionary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Copies of dictionaries in a folder. */
final class Copies {
  private final Path folder;

  Copies(Path folder) {
    this.folder = folder;
  }

  Path path(int id) {
    return folder.resolve(Integer.toUnsignedString(id) + ".zdict");
  }

  /** The bytes of a copy, or null if there is none that can be read. */
  byte[] read(int id) {
    try {
      Path path = path(id);
      return Files.size(path) <= Dictionary.MAX_BYTES ? Files.readAllBytes(path) : null;
    } catch (IOException absent) {
      return null;
    }
  }

  /** Keeps a copy, which is there whole or not at all. */
  void write(Dictionary dictionary) throws IOException {
    Files.createDirectories(folder);
    Path draft = Files.createTempFile(folder, "draft", null);
    try {
      Files.write(draft, dictionary.bytes());
      Files.move(draft, path(dictionary.id()), StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(draft);
    }
  }

  void remove(int id) {
    try {
      Files.deleteIfExists(path(id));
    } catch (IOException error) {
      // It stays, and readers check what they find.
    }
  }
}
