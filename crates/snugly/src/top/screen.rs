//! The screen: draws what was read, takes keys, and leaves the terminal as it was, whatever ends it.
//!
//! Knows the terminal and signals. Must not know what is drawn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::picture::{Picture, Update};
use super::source::Pace;
use super::view;

/// Longest time until what was read is drawn.
const NAP: Duration = Duration::from_millis(50);
/// A server that has said nothing for longer than the interval and this does not answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time to end by itself after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// Shows the picture until somebody ends it.
pub(super) fn follow(mut picture: Picture, updates: &Receiver<Update>, pace: &Pace) -> Result<()> {
    let signal = Arc::new(AtomicUsize::new(0));
    watch_signals(signal.clone())?;
    let mut terminal = ratatui::try_init()
        .inspect_err(|_| ratatui::restore())
        .context("cannot use this terminal: --once prints the numbers without one")?;
    let shown = look(&mut terminal, &mut picture, updates, pace, &signal);
    // It shows the cursor again.
    drop(terminal);
    ratatui::restore();
    match signal.load(Ordering::Relaxed) {
        0 => shown,
        number => Ok(emulate_default_handler(number as i32)?),
    }
}

/// Notes a signal, and ends the program if nobody heeds it: waiting for keys of a terminal that is gone never ends.
fn watch_signals(noted: Arc<AtomicUsize>) -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot watch for signals")?;
    thread::spawn(move || {
        for number in signals.forever() {
            noted.store(number as usize, Ordering::Relaxed);
            thread::sleep(GRACE);
            ratatui::restore();
            // It fails for signals that cannot be handled, which are not among these.
            let _ = emulate_default_handler(number);
        }
    });
    Ok(())
}

fn look(
    terminal: &mut DefaultTerminal,
    picture: &mut Picture,
    updates: &Receiver<Update>,
    pace: &Pace,
    signal: &AtomicUsize,
) -> Result<()> {
    while signal.load(Ordering::Relaxed) == 0 {
        match updates.try_recv() {
            Ok(update) => picture.take(update),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                bail!("asking the server has ended, which is a bug: please report it")
            }
        }
        picture.silence = silence(picture);
        terminal.draw(|frame| view::show(picture, frame.buffer_mut())).context("cannot draw")?;
        if event::poll(NAP).context("cannot read keys")?
            && let Event::Key(key) = event::read().context("cannot read keys")?
            && key.kind != KeyEventKind::Release
        {
            if !picture.press(key) {
                return Ok(());
            }
            pace.set(picture.interval, picture.is_paused);
        }
    }
    Ok(())
}

fn silence(picture: &Picture) -> Option<Duration> {
    let silence = Instant::now().saturating_duration_since(picture.reading.as_deref()?.at);
    (picture.lost.is_some() || silence > picture.interval + PATIENCE).then_some(silence)
}
