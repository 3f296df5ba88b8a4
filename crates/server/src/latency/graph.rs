//! Samples as characters: four lines of bars, and under each bar how long ago it was, read downwards.

use std::fmt::Write as _;

use super::{Sample, Series};

const COLUMNS: usize = 80;
const ROWS: usize = 4;
/// Upper ends of a bar, by the filled share of its uppermost row.
const ENDS: [char; 3] = ['_', 'o', '#'];
const STEPS: usize = ROWS * ENDS.len();

/// The reply of LATENCY GRAPH for an event, at this Unix time in seconds.
pub(super) fn graph(name: &str, series: &Series, now: u64) -> String {
    let times = || series.samples.iter().map(|sample| sample.milliseconds);
    let (low, high) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let mut graph = format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", series.longest);
    graph.extend(std::iter::repeat_n('-', COLUMNS));
    graph.push('\n');
    let samples: Vec<Sample> = series.samples.iter().copied().collect();
    for (number, part) in samples.chunks(COLUMNS).enumerate() {
        if number > 0 {
            graph.push('\n');
        }
        let heights: Vec<usize> = part.iter().map(|sample| height(sample.milliseconds, low, high)).collect();
        draw_bars(&heights, &mut graph);
        let labels: Vec<String> = part.iter().map(|sample| ago(now.saturating_sub(sample.at))).collect();
        draw_labels(&labels, &mut graph);
    }
    graph
}

fn height(value: u64, low: u64, high: u64) -> usize {
    let range = (high - low).max(1);
    (((value - low) as usize * STEPS) / range as usize).min(STEPS - 1)
}

fn draw_bars(heights: &[usize], graph: &mut String) {
    for row in (0..ROWS).rev() {
        let floor = row * ENDS.len();
        graph.extend(heights.iter().map(|&height| match height.checked_sub(floor) {
            None => ' ',
            Some(above) => ENDS.get(above).copied().unwrap_or('|'),
        }));
        graph.push('\n');
    }
}

fn draw_labels(labels: &[String], graph: &mut String) {
    let longest = labels.iter().map(String::len).max().unwrap_or(0);
    // An empty line comes first.
    for line in 0..=longest {
        let letter = |label: &String| line.checked_sub(1).and_then(|at| label.chars().nth(at)).unwrap_or(' ');
        graph.extend(labels.iter().map(letter));
        graph.push('\n');
    }
}

fn ago(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let (length, unit) = UNITS.iter().find(|(length, _)| seconds >= *length).unwrap_or(&UNITS[3]);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{}{unit}", seconds / length);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_over_how_long_ago_they_were() {
        let mut series = Series::default();
        for (at, milliseconds) in [(1000, 20), (4000, 610), (4599, 400), (4600, 1200)] {
            series.add(Sample { at, milliseconds });
        }
        let graph = graph("command", &series, 4600);
        let (head, bars) = graph.split_once(&"-".repeat(80)).expect("a line parts head and bars");
        assert_eq!(head, "command - high 1200 ms, low 20 ms (all time high 1200 ms)\n");
        assert_eq!(bars, "\n   #\n _ |\n |_|\n_|||\n    \n1110\nh0ss\n m  \n");
    }

    #[test]
    fn samples_that_are_all_the_same_lie_on_the_ground() {
        let mut series = Series::default();
        series.add(Sample { at: 10, milliseconds: 7 });
        assert!(graph("command", &series, 10).ends_with("-\n \n \n \n_\n \n0\ns\n"));
    }
}
