package dictionaries

import (
	"testing"
	"time"
)

func TestWhateverElseLiesInThePlaceOfADictionaryIsOverwritten(t *testing.T) {
	own := readDictionaries(t)["profiles"]
	for name, other := range map[string]any{
		"another dictionary": string(readDictionaries(t)["orders"].Bytes()), "other text": "hello", "nothing": "",
		"more": string(own.Bytes()) + "!", "another type": &Failure{Refused, "WRONGTYPE Operation against a key"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLook(t)
			l.cache.hold(own, l.now)
			task := run(l.Keep(), l.now)
			for _, touched := range []string{l.settings.DictionaryKey(own.ID()), l.settings.CatalogueKey()} {
				l.expect(task, Send{[]Command{{"TOUCH", touched}}})
				l.reply(task, int64(1))
			}
			l.expect(task, l.gets(false, own.ID()))
			l.reply(task, other)
			l.expect(task, l.gets(true))
			l.reply(task, nil)
			l.expect(task, Send{[]Command{{"SET", l.settings.DictionaryKey(own.ID()), string(own.Bytes())}}})
			l.reply(task, "OK")
			l.expect(task, nil)
			if events := task.events(); len(events) != 1 || events[0].Kind != Mended {
				t.Errorf("%v was told", events)
			}
		})
	}
}

func TestAGivenDictionaryThatIsForgottenIsNotWrittenWithThoughItIsThere(t *testing.T) {
	given := readDictionaries(t)["profiles"]
	l := &look{t, NewManager(Settings{Given: given, Prefix: "{snugly}", Refresh: time.Minute}), began}
	catalogue := Send{[]Command{{"GET", "{snugly}:dicts"}}}
	touches := []Request{Send{[]Command{{"TOUCH", l.settings.DictionaryKey(given.ID())}}}, Send{[]Command{{"TOUCH", "{snugly}:dicts"}}}}
	for _, forgotten := range []bool{false, true} {
		document := `{"version": 1}`
		if forgotten {
			document = l.forgetting(given.ID())
		}
		task := run(l.Refresh(), l.now)
		l.expect(task, catalogue)
		l.reply(task, document)
		for _, touch := range touches {
			l.expect(task, touch)
			l.reply(task, int64(1))
		}
		l.expect(task, l.gets(false, given.ID()))
		l.reply(task, string(given.Bytes()))
		l.expect(task, nil)
		if isWritten := l.cache.For("any") != nil; isWritten == forgotten {
			t.Errorf("it is written with: %v", isWritten)
		}
		l.now = l.now.Add(time.Minute)
	}
}
