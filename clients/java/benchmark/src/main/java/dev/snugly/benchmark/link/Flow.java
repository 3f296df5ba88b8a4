package dev.snugly.benchmark.link;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicInteger;

/** Bytes from one socket to another, a piece at a time. One thread uses it. */
final class Flow {
  /** The most that a connection transmits before others have their turn, in bytes. */
  private static final int PIECE = 16 << 10;

  private final SocketChannel source;
  private final SocketChannel target;
  private final AtomicInteger open;
  private final ByteBuffer piece = ByteBuffer.allocate(PIECE).limit(0);
  private SelectionKey reading;
  private SelectionKey writing;

  /**
   * A flow between sockets that do not block.
   *
   * @param open how many flows there are between the two: the last one that ends closes them
   */
  Flow(SocketChannel source, SocketChannel target, AtomicInteger open) {
    this.source = source;
    this.target = target;
    this.open = open;
  }

  /** Has the selector tell when there is something to do. */
  void register(Selector selector) {
    try {
      reading = source.register(selector, SelectionKey.OP_READ, this);
      writing = target.register(selector, 0, this);
    } catch (IOException gone) {
      close();
    }
  }

  /** Returns how many bytes it has taken from the source: none while the last ones are left. */
  int read() {
    if (piece.hasRemaining()) {
      return 0;
    }
    try {
      int size = source.read(piece.clear());
      piece.flip();
      if (size < 0) {
        end();
      }
      return size;
    } catch (IOException broken) {
      close();
      return 0;
    }
  }

  /** Writes what was read, as far as the target takes it. */
  void write() {
    if (!reading.isValid()) {
      return;
    }
    try {
      target.write(piece);
      reading.interestOps(piece.hasRemaining() ? 0 : SelectionKey.OP_READ);
      writing.interestOps(piece.hasRemaining() ? SelectionKey.OP_WRITE : 0);
    } catch (IOException | CancelledKeyException broken) {
      close();
    }
  }

  private void end() throws IOException {
    reading.cancel();
    target.shutdownOutput();
    if (open.decrementAndGet() == 0) {
      close();
    }
  }

  private void close() {
    try (source;
        target) {
      piece.limit(0);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
