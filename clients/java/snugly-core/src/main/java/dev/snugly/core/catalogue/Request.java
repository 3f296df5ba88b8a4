package dev.snugly.core.catalogue;

import dev.snugly.core.Dictionary;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

/**
 * Something that the driver of a task is to do.
 *
 * @param <A> the answer
 */
sealed interface Request<A> {
  /** Has it done, and returns the answer. */
  A by(Driver driver);

  /** Does what tasks ask. */
  interface Driver {
    /** Sends commands in one round trip, and returns as many replies. */
    List<DictionaryReply> send(List<DictionaryCommand> commands);

    /** Reads the copies that there are. */
    List<Copy> readCopies(Collection<Integer> ids);

    /** Keeps copies, and returns why some cannot be kept, if that is so. */
    Optional<String> writeCopies(Collection<Dictionary> dictionaries);

    /** Removes copies, if there are any. */
    void removeCopies(Collection<Integer> ids);
  }

  /** A copy of a dictionary, as it was found. */
  final class Copy {
    /** The ID of the dictionary that it is kept as. */
    final int id;

    /** The file's name, for people. */
    final String place;

    final byte[] bytes;

    Copy(int id, String place, byte[] bytes) {
      this.id = id;
      this.place = place;
      this.bytes = bytes;
    }
  }

  /** Commands of one round trip. */
  record Send(List<DictionaryCommand> commands) implements Request<List<DictionaryReply>> {
    @Override
    public List<DictionaryReply> by(Driver driver) {
      return driver.send(commands);
    }
  }

  /** Copies to be read, by the IDs of their dictionaries. */
  record ReadCopies(List<Integer> ids) implements Request<List<Copy>> {
    @Override
    public List<Copy> by(Driver driver) {
      return driver.readCopies(ids);
    }
  }

  /** Dictionaries to be copied; the answer is why some cannot be. */
  record WriteCopies(List<Dictionary> dictionaries) implements Request<Optional<String>> {
    @Override
    public Optional<String> by(Driver driver) {
      return driver.writeCopies(dictionaries);
    }
  }

  /** Copies to be removed, by the IDs of their dictionaries. */
  record RemoveCopies(List<Integer> ids) implements Request<Void> {
    @Override
    public Void by(Driver driver) {
      driver.removeCopies(ids);
      return null;
    }
  }
}
