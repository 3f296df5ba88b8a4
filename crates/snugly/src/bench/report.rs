//! Results as a table for people and as CSV for programs, from one description of the columns.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::table;

/// A column: its name in CSV files, its title in tables (none: not shown there).
pub struct Column {
    pub name: &'static str,
    pub title: Option<&'static str>,
}

/// Rows of text under columns.
pub struct Report {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

impl Report {
    pub fn new(columns: &'static [Column]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row with a cell for every column.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.columns.len(), "a cell for every column");
        self.rows.push(row);
    }

    /// Prints the columns that have a title, the first one aligned to the left.
    pub fn print(&self) {
        let shown: Vec<(usize, &str)> = (self.columns.iter().enumerate())
            .filter_map(|(index, column)| column.title.map(|title| (index, title)))
            .collect();
        let titles: Vec<&str> = shown.iter().map(|&(_, title)| title).collect();
        let cells = |row: &Vec<String>| shown.iter().map(|&(index, _)| row[index].clone()).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(cells).collect();
        print!("{}", table::lay_out(&titles, &rows));
    }

    /// Appends the rows to a CSV file; a new or empty one gets a header first.
    pub fn append_csv(&self, path: &Path) -> Result<()> {
        let context = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().create(true).append(true).open(path).with_context(context)?;
        let is_new = file.metadata().with_context(context)?.len() == 0;
        self.write_csv(file, is_new, &self.rows).with_context(context)
    }

    /// Writes the row that was added last as CSV, the first one with a header.
    pub fn write_last_csv(&self, out: impl Write) -> Result<()> {
        let last = self.rows.len().saturating_sub(1);
        self.write_csv(out, last == 0, &self.rows[last..])
    }

    fn write_csv(&self, out: impl Write, has_header: bool, rows: &[Vec<String>]) -> Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        if has_header {
            writer.write_record(self.columns.iter().map(|column| column.name))?;
        }
        for row in rows {
            writer.write_record(row)?;
        }
        writer.flush()?;
        Ok(())
    }
}
