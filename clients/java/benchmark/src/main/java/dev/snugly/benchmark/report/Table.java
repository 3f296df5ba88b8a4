package dev.snugly.benchmark.report;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A table in Markdown that can be read as it is, too. */
final class Table {
  private final List<String> header;
  private final int texts;
  private final List<List<String>> rows = new ArrayList<>();

  /** A table whose first columns, so many, are text; numbers are set to the right. */
  Table(int texts, String... header) {
    this.texts = texts;
    this.header = List.of(header);
  }

  /** Adds a row; cells that are not given stay empty. */
  void add(List<String> cells) {
    List<String> row = new ArrayList<>(cells);
    row.addAll(Collections.nCopies(header.size() - cells.size(), ""));
    rows.add(row);
  }

  @Override
  public String toString() {
    List<Integer> widths = IntStream.range(0, header.size()).mapToObj(this::width).toList();
    List<String> rule =
        IntStream.range(0, header.size())
            .mapToObj(column -> rule(column, widths.get(column)))
            .toList();
    List<List<String>> lines = new ArrayList<>(List.of(header, rule));
    lines.addAll(rows);
    return lines.stream()
        .map(line -> line(line, widths))
        .collect(Collectors.joining("\n", "", "\n"));
  }

  private int width(int column) {
    int widest = rows.stream().mapToInt(row -> row.get(column).length()).max().orElse(0);
    return Math.max(widest, header.get(column).length());
  }

  private String rule(int column, int width) {
    return column < texts ? "-".repeat(width) : "-".repeat(width - 1) + ":";
  }

  private String line(List<String> cells, List<Integer> widths) {
    return IntStream.range(0, cells.size())
        .mapToObj(
            column -> {
              String align = column < texts ? "-" : "";
              return ("%" + align + widths.get(column) + "s").formatted(cells.get(column));
            })
        .collect(Collectors.joining(" | ", "| ", " |"));
  }
}
