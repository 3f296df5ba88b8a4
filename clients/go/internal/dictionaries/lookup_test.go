package dictionaries

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// look is a manager whose time goes on as a test says.
type look struct {
	*testing.T
	*Manager
	now time.Time
}

func newLook(t *testing.T) *look {
	return &look{t, NewManager(Settings{Prefix: "{snugly}", Refresh: 12 * time.Second}), began}
}

// expect takes the next request of a task.
func (l *look) expect(task *running, expected Request) {
	l.Helper()
	request, isThere := task.next()
	if !isThere {
		request = nil
	}
	if !reflect.DeepEqual(request, expected) {
		l.Fatalf("%v is asked, not %v", request, expected)
	}
}

// reply answers a Send.
func (l *look) reply(task *running, replies ...any) {
	task.answer(Answer{Now: l.now, Replies: replies})
}

// gets is a Send of GETs, for dictionaries and the catalogue.
func (l *look) gets(andCatalogue bool, ids ...uint32) Request {
	var commands []Command
	for _, id := range ids {
		commands = append(commands, Command{"GET", l.settings.DictionaryKey(id)})
	}
	if andCatalogue {
		commands = append(commands, Command{"GET", l.settings.CatalogueKey()})
	}
	return Send{commands}
}

// forgetting is a catalogue that has a dictionary forgotten.
func (l *look) forgetting(id uint32) string {
	return fmt.Sprintf(`{"version": 1, "forgotten": [%d]}`, id)
}

func TestReadersAtTheSameTimeLookForUnknownOnesTogether(t *testing.T) {
	l := newLook(t)
	first, second, third := run(l.Fetch([]uint32{1}), l.now), run(l.Fetch([]uint32{2}), l.now), run(l.Fetch([]uint32{3}), l.now)
	l.expect(first, l.gets(true, 1))
	l.expect(second, Sleep{firstPause})
	l.expect(third, Sleep{firstPause})
	l.reply(first, nil, `{"version": 1, "dictionaries": [{"id": 1, "pattern": "*"}]}`)
	// An ID that the catalogue turns out to have was not made up.
	l.expect(first, Sleep{firstPause})
	second.answer(Answer{Now: l.now})
	l.expect(second, l.gets(true, 2, 3))
	l.reply(second, nil, nil, nil)
	l.expect(second, nil)
	third.answer(Answer{Now: l.now})
	l.expect(third, nil)
	if !l.IsMissing(2, l.now) {
		t.Error("it is looked for again")
	}
	first.stop()
}

func TestAnUnknownOneIsLookedForAgainWhereTheServerWasLost(t *testing.T) {
	l := newLook(t)
	task := run(l.Fetch([]uint32{1}), l.now)
	l.expect(task, l.gets(true, 1))
	task.answer(Answer{Now: l.now, Lost: errors.New("connection reset")})
	l.expect(task, Sleep{firstPause})
	// This costs one look-up a second, too.
	l.expect(run(l.Fetch([]uint32{2}), l.now), nil)
	l.now = l.now.Add(restAfterVain)
	task.answer(Answer{Now: l.now})
	l.expect(task, l.gets(true, 1))
	l.reply(task, nil, nil)
	l.expect(task, nil)
}

func TestReadersWhoLeaveWaitNoLongerTogetherThanOne(t *testing.T) {
	l := newLook(t)
	l.cache.list(document{dictionaries: []entry{{active{"*", 1}, -1}}}, l.now)
	const allowed, each = 1500 * time.Millisecond, 400 * time.Millisecond
	for waited := time.Duration(0); waited < allowed; waited += each {
		if l.IsMissing(1, l.now) {
			t.Fatalf("it is missing after %v", waited)
		}
		task := run(l.Fetch([]uint32{1}), l.now)
		l.expect(task, l.gets(false, 1))
		l.now = l.now.Add(each)
		l.reply(task, nil)
		if waited+each < allowed {
			l.expect(task, Sleep{firstPause})
		} else {
			l.expect(task, nil)
		}
		task.stop()
	}
	if !l.IsMissing(1, l.now) {
		t.Error("the next one waits, too")
	}
}

func TestAMissingOneIsWaitedForNoLongerThanTheClientWaitsForAReply(t *testing.T) {
	for longest, waits := range map[time.Duration]time.Duration{
		0: 1500 * time.Millisecond, 700 * time.Millisecond: 700 * time.Millisecond, time.Minute: 1500 * time.Millisecond,
	} {
		l := &look{t, NewManager(Settings{Prefix: "{snugly}", Refresh: 12 * time.Second, LongestWait: longest}), began}
		l.cache.list(document{dictionaries: []entry{{active{"*", 1}, -1}}}, l.now)
		task := run(l.Fetch([]uint32{1}), l.now)
		l.expect(task, l.gets(false, 1))
		l.now = began.Add(waits)
		l.reply(task, nil)
		l.expect(task, Sleep{firstPause})
		task.answer(Answer{Now: l.now})
		l.expect(task, l.gets(false, 1))
		l.now = l.now.Add(1)
		l.reply(task, nil)
		l.expect(task, nil)
		// Within a round of a second its holders may put it back.
		if missing := l.IsMissing(1, l.now); missing != (waits >= time.Second) {
			t.Errorf("%v: it is missing: %v", longest, missing)
		}
	}
}

func TestATaskThatIsBrokenOffAsksForNothingMore(t *testing.T) {
	l := newLook(t)
	l.cache.hold(readDictionaries(t)["profiles"], l.now)
	for name, task := range map[string]*running{
		"fetch": run(l.Fetch([]uint32{1, 2}), l.now), "refresh": run(l.Refresh(), l.now), "keep": run(l.Keep(), l.now),
	} {
		if _, isThere := task.next(); !isThere {
			t.Errorf("%s asks for nothing", name)
		}
		task.stop()
	}
	if len(l.state.unknown.waiting) > 0 {
		t.Error("somebody waits still")
	}
	l.now = l.now.Add(restAfterVain)
	task := run(l.Fetch([]uint32{3}), l.now)
	l.expect(task, l.gets(true, 3))
	task.stop()
}

func TestOneLookUpIsForSoManyUnknownOnes(t *testing.T) {
	l := newLook(t)
	ids := make([]uint32, mostUnknown+10)
	for at := range ids {
		ids[at] = uint32(at + 1)
	}
	task := run(l.Fetch(ids), l.now)
	l.expect(task, l.gets(true, ids[:mostUnknown]...))
	l.reply(task, make([]any, mostUnknown+1)...)
	l.expect(task, nil)
}

func TestOnlySoManyAreRememberedAsMissing(t *testing.T) {
	var absent missing
	noted := absence{began, began.Add(time.Minute)}
	for id := range uint32(mostUnknown + 2) {
		absent.note(id, noted)
	}
	absent.note(2, noted)
	absent.forget(3)
	absent.forget(3)
	for id, expected := range map[uint32]bool{1: false, 2: true, 3: false, mostUnknown + 1: true} {
		if absent.has(id, began) != expected {
			t.Errorf("%d is remembered: %v", id, !expected)
		}
	}
	if len(absent.order) != len(absent.absences) {
		t.Errorf("%d are in order, of %d", len(absent.order), len(absent.absences))
	}
}

func TestMoreThanAreKeptAtHandAreFoundAtOnce(t *testing.T) {
	l := newLook(t)
	var ids []uint32
	contents := map[uint32]any{}
	for _, each := range several(t, mostHeld+10) {
		ids = append(ids, each.ID())
		contents[each.ID()] = string(each.Bytes())
	}
	slices.Sort(ids)
	task := run(l.Fetch(ids), l.now)
	l.expect(task, l.gets(true, ids...))
	var replies []any
	for _, id := range ids {
		replies = append(replies, contents[id])
	}
	l.reply(task, append(replies, nil)...)
	l.expect(task, nil)
	if found := task.outcome().(Found); len(found) != len(ids) {
		t.Errorf("%d of %d were found", len(found), len(ids))
	}
}
