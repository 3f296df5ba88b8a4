//! Any bytes are a catalogue or an error; a catalogue is written and read back as the same, and chooses for any key.

use std::time::Duration;

use snugly_dictionaries::Catalogue;

pub fn run(input: &[u8]) {
    let Ok(mut catalogue) = Catalogue::decode(input) else { return };
    let document = catalogue.encode().expect("what was read can be written");
    assert_eq!(Catalogue::decode(&document).as_ref(), Ok(&catalogue));
    let active = catalogue.active_for(input);
    let choices = catalogue.choices(Duration::from_secs(100), Duration::from_secs(60), |_| Duration::MAX);
    assert_eq!(choices.len(), catalogue.active.len());
    if let Some(id) = active {
        catalogue.forget(id);
        assert!(catalogue.active.iter().all(|row| row.id != id));
    }
}
