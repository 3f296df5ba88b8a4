//! Tables for people: columns as wide as what is in them.

/// Rows under titles, the first column aligned to the left and the others to the right, a line each.
pub(crate) fn lay_out(titles: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (titles.iter().enumerate())
        .map(|(at, title)| rows.iter().map(|row| width(&row[at])).fold(width(title), usize::max))
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut titles.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [vec!["für:*".to_owned(), "1".to_owned()], vec!["x".to_owned(), "1000".to_owned()]];
        assert_eq!(lay_out(&["keys", "n"], &rows), "keys      n\nfür:*     1\nx      1000\n");
    }
}
