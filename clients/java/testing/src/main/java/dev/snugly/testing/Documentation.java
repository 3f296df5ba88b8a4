package dev.snugly.testing;

import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/** The Java in the documentation. */
public final class Documentation {
  private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern CLASS = Pattern.compile("^class (\\w+)", Pattern.MULTILINE);

  private Documentation() {}

  /**
   * Compiles the examples of docs/java.md that need what is on the class path.
   *
   * @param need what they import, such as {@code dev.snugly.jedis.}
   * @param folder where the classes go
   * @return the names of the classes
   * @throws AssertionError if one does not compile; the message is the compiler's
   */
  public static List<String> compile(String need, Path folder) {
    try {
      String text =
          Files.readString(Vectors.specification().resolve("../docs/java.md").normalize());
      List<String> names = new ArrayList<>();
      Matcher block = BLOCK.matcher(text);
      while (block.find()) {
        Matcher name = CLASS.matcher(block.group(1));
        if (block.group(1).contains("import " + need) && name.find()) {
          names.add(name.group(1));
          compile(name.group(1), block.group(1), folder);
        }
      }
      return names;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static void compile(String name, String source, Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve(name + ".java"), source);
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    List<String> options = List.of("-d", folder.toString(), "-proc:none");
    StringWriter messages = new StringWriter();
    try (var files = compiler.getStandardFileManager(null, null, null)) {
      boolean isCompiled =
          compiler
              .getTask(messages, files, null, options, null, files.getJavaFileObjects(file))
              .call();
      if (!isCompiled) {
        throw new AssertionError("an example of docs/java.md does not compile:\n" + messages);
      }
    }
  }
}
