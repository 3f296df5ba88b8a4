package snugly.clients;

import com.google.gson.Gson;
import java.util.ArrayList;
import java.util.List;

/**
 * Connects to a server with the clients for Java as they come, and prints one line of JSON for each
 * check.
 *
 * <pre>java -cp ... snugly.clients.Main HOST PORT PORT-WITH-PASSWORD</pre>
 *
 * <p>README.md two folders up says what every such program takes, prints and checks.
 */
public final class Main {
  private static final int WRONG_USAGE = 2;
  private static final List<Library> LIBRARIES =
      List.of(JedisClient.LIBRARY, ValkeyJavaClient.LIBRARY, LettuceClient.LIBRARY);

  private Main() {}

  private record Line(String client, int protocol, String check, boolean ok, String detail) {}

  public static void main(String[] arguments) {
    if (arguments.length != 3) {
      System.err.println("usage: Main HOST PORT PORT-WITH-PASSWORD");
      System.exit(WRONG_USAGE);
    }
    var open = new Address(arguments[0], Integer.parseInt(arguments[1]));
    var locked = new Address(arguments[0], Integer.parseInt(arguments[2]));
    var complaints = Complaints.collect();

    var lines = new ArrayList<Line>();
    for (var library : LIBRARIES) {
      for (var protocol : List.of(2, 3)) {
        complaints.take();
        try (var run = new Run(library, protocol, open, locked, complaints)) {
          lines.addAll(tryAll(run));
        }
      }
    }
    System.exit(lines.stream().allMatch(Line::ok) ? 0 : 1);
  }

  /** Makes every check of one library in one protocol. */
  private static List<Line> tryAll(Run run) {
    var lines = new ArrayList<Line>();
    Checks.ALL.forEach(
        (name, check) -> {
          var detail = Failure.of(() -> check.accept(run));
          var line = new Line(run.library().name(), run.protocol(), name, detail.isEmpty(), detail);
          System.out.println(new Gson().toJson(line));
          lines.add(line);
        });
    return lines;
  }
}
