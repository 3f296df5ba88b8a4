package dev.snugly.testing;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A plain connection that shows what is stored: RESP2, and no client library in between. */
public final class Connection implements AutoCloseable {
  private static final int PATIENCE = 60_000;

  /** An error that the server has answered. */
  public static final class ErrorReply extends RuntimeException {
    private static final long serialVersionUID = 1L;

    ErrorReply(String message) {
      super(message);
    }
  }

  private final Socket socket = new Socket();
  private final InputStream input;

  /** Connects to a port on loopback. */
  public Connection(int port) {
    try {
      socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), PATIENCE);
      socket.setSoTimeout(PATIENCE);
      input = new BufferedInputStream(socket.getInputStream());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * Sends a command and returns its reply: {@code byte[]}, Long, String for simple strings, List,
   * or null.
   *
   * @param words text, bytes or numbers
   * @throws ErrorReply for an error
   */
  public Object command(Object... words) {
    try {
      socket.getOutputStream().write(packed(words));
      return reply();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** The same for a reply that is a bulk string. */
  public byte[] bytes(Object... words) {
    return (byte[]) command(words);
  }

  /** The same for a reply that is a bulk string of text. */
  public String text(Object... words) {
    byte[] bytes = bytes(words);
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }

  private static byte[] packed(Object... words) {
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    packed.writeBytes(ascii("*" + words.length + "\r\n"));
    for (Object word : words) {
      byte[] bytes =
          word instanceof byte[] raw ? raw : word.toString().getBytes(StandardCharsets.UTF_8);
      packed.writeBytes(ascii("$" + bytes.length + "\r\n"));
      packed.writeBytes(bytes);
      packed.writeBytes(ascii("\r\n"));
    }
    return packed.toByteArray();
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private Object reply() throws IOException {
    String line = line();
    String rest = line.substring(1);
    return switch (line.charAt(0)) {
      case '+' -> rest;
      case '-' -> throw new ErrorReply(rest);
      case ':' -> Long.valueOf(rest);
      case '$' -> bulk(Integer.parseInt(rest));
      case '*' -> array(Integer.parseInt(rest));
      default -> throw new IOException("a reply of an unknown type: " + line);
    };
  }

  private byte[] bulk(int length) throws IOException {
    if (length < 0) {
      return null;
    }
    byte[] bytes = input.readNBytes(length);
    line();
    return bytes;
  }

  private List<Object> array(int length) throws IOException {
    if (length < 0) {
      return null;
    }
    List<Object> items = new ArrayList<>();
    for (int index = 0; index < length; index++) {
      items.add(reply());
    }
    return items;
  }

  private String line() throws IOException {
    StringBuilder line = new StringBuilder();
    int each = input.read();
    while (each != '\r') {
      if (each < 0) {
        throw new EOFException("the server has closed the connection");
      }
      line.append((char) each);
      each = input.read();
    }
    input.read();
    return line.toString();
  }

  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
