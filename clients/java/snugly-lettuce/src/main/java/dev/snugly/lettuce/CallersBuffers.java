package dev.snugly.lettuce;

import io.netty.buffer.AbstractByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;

/**
 * Buffers for the threads of callers. Netty's pool has caches for its own threads alone: others
 * take turns at a lock, for longer than a short command takes to be encoded. These are left to the
 * garbage collector and need not be released.
 */
final class CallersBuffers extends AbstractByteBufAllocator {
  static final CallersBuffers INSTANCE = new CallersBuffers();

  /**
   * Longer ones that a codec of Lettuce's asks for, in bytes, come from the pool, whose memory is
   * not the heap's: it asks for three times the length of a string.
   */
  private static final int LONGEST = 4 << 10;

  private CallersBuffers() {
    super(false);
  }

  @Override
  public ByteBuf buffer(int initialCapacity) {
    return initialCapacity > LONGEST
        ? PooledByteBufAllocator.DEFAULT.buffer(initialCapacity)
        : heapBuffer(initialCapacity);
  }

  @Override
  protected ByteBuf newHeapBuffer(int initialCapacity, int maxCapacity) {
    return new UnpooledHeapByteBuf(this, initialCapacity, maxCapacity);
  }

  @Override
  protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
    return PooledByteBufAllocator.DEFAULT.directBuffer(initialCapacity, maxCapacity);
  }

  @Override
  public boolean isDirectBufferPooled() {
    return PooledByteBufAllocator.DEFAULT.isDirectBufferPooled();
  }
}
