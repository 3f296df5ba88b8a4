package dictionaries

import (
	"testing"
	"time"
)

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
