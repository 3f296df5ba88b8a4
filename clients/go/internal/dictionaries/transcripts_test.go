package dictionaries

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// began is when a transcript begins.
var began = time.Unix(1_769_860_800, 0)

// transcript is one of spec/vectors/manager.json, which its README explains.
type transcript struct {
	Name   string
	Client struct {
		Refresh       float64
		Writes, Waits bool
		HasCopies     bool `json:"has_copies"`
		Given         string
	}
	Steps []step
}

type step struct {
	Do        string
	IDs       []string
	Seconds   float64
	Catalogue listing

	Ask    *asked
	Answer outcome
	After  *float64

	Done   json.RawMessage
	Events []json.RawMessage

	Missing    *[]string
	Off        *bool
	Holds      *[]string
	WritesWith map[string]*string `json:"writes_with"`
}

type asked struct {
	Send         [][]written
	Sleep        *float64
	ReadCopies   []string `json:"read_copies"`
	WriteCopies  []string `json:"write_copies"`
	RemoveCopies []string `json:"remove_copies"`
}

type outcome struct {
	Replies []written
	Copies  []string
	Lost    *string
}

// written is an argument or a reply: text, a number, null, or one of these.
type written struct {
	plain           any
	KeyOf           string `json:"key_of"`
	Dictionary      string
	Catalogue       *listing
	Denied, Refused string
}

type listing struct {
	Active      map[string]string
	Forgotten   []string
	PublishedAt *float64 `json:"published_at"`
}

func (w *written) UnmarshalJSON(content []byte) error {
	if content[0] == '{' {
		type fields written
		return json.Unmarshal(content, (*fields)(w))
	}
	return json.Unmarshal(content, &w.plain)
}

// player plays one transcript.
type player struct {
	*testing.T
	dictionaries map[string]*envelope.Dictionary
	manager      *Manager
	now          time.Time
	events       []Event

	running *running // The task that was begun last.
	request Request  // Its last one; nil if it has none.
}

// running is a task, whatever its outcome.
type running struct {
	next    func() (Request, bool)
	stop    func()
	answer  func(Answer)
	events  func() []Event
	outcome func() any
}

func run[T any](task *Task[T], now time.Time) *running {
	next, stop := iter.Pull(task.Requests(now))
	return &running{next, stop, task.Answer, task.Events, func() any { return task.Outcome() }}
}

func readDictionaries(t *testing.T) map[string]*envelope.Dictionary {
	t.Helper()
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	loaded := map[string]*envelope.Dictionary{}
	for name, row := range read.Dictionaries {
		dictionary, err := envelope.LoadDictionary(row.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		loaded[name] = dictionary
	}
	return loaded
}

func newPlayer(t *testing.T, of transcript) *player {
	made := &player{T: t, dictionaries: readDictionaries(t), now: began}
	refresh := 60.0
	if of.Client.Refresh != 0 {
		refresh = of.Client.Refresh
	}
	given := made.dictionaries[of.Client.Given]
	made.manager = NewManager(Settings{
		Given: given, UsesCatalogue: of.Client.Writes && given == nil, Prefix: "{snugly}", Refresh: duration(refresh),
		Waits: of.Client.Waits, HasCopies: of.Client.HasCopies,
	})
	return made
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

func (p *player) ids(names []string) (ids []uint32) {
	for _, name := range names {
		ids = append(ids, p.dictionaries[name].ID())
	}
	return ids
}

func (p *player) name(id uint32) string {
	for name, each := range p.dictionaries {
		if each.ID() == id {
			return name
		}
	}
	return fmt.Sprint(id)
}

func (p *player) names(ids []uint32) []string {
	names := []string{}
	for _, id := range ids {
		names = append(names, p.name(id))
	}
	return names
}

func (p *player) document(of listing) string {
	type row struct {
		Pattern     string   `json:"pattern"`
		ID          uint32   `json:"id"`
		PublishedAt *float64 `json:"published_at,omitempty"`
	}
	active, rows := []row{}, []row{}
	for pattern, name := range of.Active {
		each := row{Pattern: pattern, ID: p.dictionaries[name].ID()}
		active = append(active, each)
		if of.PublishedAt != nil {
			at := *of.PublishedAt + float64(began.Unix())
			each.PublishedAt = &at
		}
		rows = append(rows, each)
	}
	content, err := json.Marshal(map[string]any{
		"version": 1, "active": active, "dictionaries": rows, "forgotten": append([]uint32{}, p.ids(of.Forgotten)...),
	})
	if err != nil {
		p.Fatal(err)
	}
	return string(content)
}

// value is what is written down, as it is sent and replied.
func (p *player) value(of written) any {
	switch {
	case of.KeyOf != "":
		return p.manager.settings.DictionaryKey(p.dictionaries[of.KeyOf].ID())
	case of.Dictionary != "":
		return string(p.dictionaries[of.Dictionary].Bytes())
	case of.Catalogue != nil:
		return p.document(*of.Catalogue)
	case of.Denied != "":
		return &Failure{Denied, of.Denied}
	case of.Refused != "":
		return &Failure{Refused, of.Refused}
	}
	if number, isNumber := of.plain.(float64); isNumber {
		return int64(number)
	}
	return of.plain
}

func (p *player) expected(of *asked) Request {
	switch {
	case of.Send != nil:
		commands := make([]Command, len(of.Send))
		for at, command := range of.Send {
			for _, argument := range command {
				commands[at] = append(commands[at], p.value(argument).(string))
			}
		}
		return Send{commands}
	case of.Sleep != nil:
		return Sleep{duration(*of.Sleep)}
	case of.ReadCopies != nil:
		return ReadCopies{p.ids(of.ReadCopies)}
	case of.RemoveCopies != nil:
		return RemoveCopies{p.ids(of.RemoveCopies)}
	}
	var all []*envelope.Dictionary
	for _, name := range of.WriteCopies {
		all = append(all, p.dictionaries[name])
	}
	return WriteCopies{all}
}

// isSame compares requests; dictionaries that were loaded twice are the same.
func isSame(one, other Request) bool {
	written, isWritten := one.(WriteCopies)
	expected, isExpected := other.(WriteCopies)
	if isWritten && isExpected {
		return slices.EqualFunc(written.Dictionaries, expected.Dictionaries, func(one, other *envelope.Dictionary) bool { return one.ID() == other.ID() })
	}
	return reflect.DeepEqual(one, other)
}

func (p *player) answer(of outcome) Answer {
	made := Answer{Now: p.now}
	if of.Lost != nil {
		made.Lost = errors.New(*of.Lost)
	}
	for _, reply := range of.Replies {
		made.Replies = append(made.Replies, p.value(reply))
	}
	for _, name := range of.Copies {
		made.Copies = append(made.Copies, Copy{p.dictionaries[name].ID(), "a file", p.dictionaries[name].Bytes()})
	}
	return made
}

// begin does what a step says, which begins a task, perhaps.
func (p *player) begin(step step) {
	p.running = nil
	switch step.Do {
	case "fetch":
		p.running = run(p.manager.Fetch(p.ids(step.IDs)), p.now)
	case "refresh":
		p.running = run(p.manager.Refresh(), p.now)
	case "keep":
		p.running = run(p.manager.Keep(), p.now)
	case "pass":
		p.now = p.now.Add(duration(step.Seconds))
	case "hurry":
		p.manager.Hurry()
	case "hold":
		for _, name := range step.IDs {
			p.manager.cache.hold(p.dictionaries[name], p.now)
		}
	case "read":
		listed, err := decode([]byte(p.document(step.Catalogue)))
		if err != nil {
			p.Fatal(err)
		}
		p.manager.cache.list(listed, p.now)
	case "look":
	default:
		p.Fatalf("%q is nothing to do", step.Do)
	}
	p.advance()
}

func (p *player) advance() {
	p.request = nil
	if p.running == nil {
		return
	}
	if request, isThere := p.running.next(); isThere {
		p.request = request
	}
	p.events = append(p.events, p.running.events()...)
}

func (p *player) exchange(step step) {
	if expected := p.expected(step.Ask); !isSame(p.request, expected) {
		p.Fatalf("%.300q is asked, not %.300q", fmt.Sprint(p.request), fmt.Sprint(expected))
	}
	switch {
	case step.After != nil:
		p.now = p.now.Add(duration(*step.After))
	case step.Ask.Sleep != nil:
		p.now = p.now.Add(duration(*step.Ask.Sleep))
	}
	p.running.answer(p.answer(step.Answer))
	p.advance()
}

func (p *player) end(step step) {
	if p.running == nil || p.request != nil {
		p.Fatalf("it is not done, but asks for %.300q", fmt.Sprint(p.request))
	}
	var got any
	switch outcome := p.running.outcome().(type) {
	case Found:
		got = p.names(slices.Sorted(maps.Keys(outcome)))
	case time.Duration:
		got = outcome.Seconds()
	}
	content, err := json.Marshal(got)
	if err != nil {
		p.Fatal(err)
	}
	var wanted, outcome any
	if err := errors.Join(json.Unmarshal(content, &outcome), json.Unmarshal(step.Done, &wanted)); err != nil {
		p.Fatal(err)
	}
	if !reflect.DeepEqual(outcome, wanted) {
		p.Fatalf("%s comes of it, not %s", content, step.Done)
	}
	p.running = nil
	p.checkEvents(step.Events)
}

var eventNames = map[EventKind]string{Fetched: "fetched", PutBack: "put_back", Mended: "mended", CatalogueLost: "catalogue_lost"}

func (p *player) checkEvents(expected []json.RawMessage) {
	events := p.events
	p.events = nil
	if len(events) != len(expected) {
		p.Fatalf("these are told: %v, not %s", events, expected)
	}
	for at, event := range events {
		var name string
		var warned struct{ Warning string }
		if json.Unmarshal(expected[at], &name) != nil {
			if err := json.Unmarshal(expected[at], &warned); err != nil {
				p.Fatal(err)
			}
		}
		isIt := name != "" && eventNames[event.Kind] == name
		if warned.Warning != "" {
			isIt = event.Kind == Warned && strings.Contains(event.Warning, warned.Warning)
		}
		if !isIt {
			p.Fatalf("this is told: %v, not %s", event, expected[at])
		}
	}
}

// check compares what a step says to be true after it.
func (p *player) check(step step) {
	if step.Missing != nil {
		var missing []string
		for name, each := range p.dictionaries {
			if p.manager.IsMissing(each.ID(), p.now) {
				missing = append(missing, name)
			}
		}
		if expected := slices.Sorted(slices.Values(*step.Missing)); !slices.Equal(slices.Sorted(slices.Values(missing)), expected) {
			p.Errorf("%q are missing, not %q", missing, expected)
		}
	}
	if step.Off != nil && p.manager.IsOff(p.now) != *step.Off {
		p.Errorf("dictionaries are off: %v", !*step.Off)
	}
	if step.Holds != nil {
		if held := p.names(p.manager.cache.IDs()); !slices.Equal(held, *step.Holds) {
			p.Errorf("%q are at hand, not %q", held, *step.Holds)
		}
	}
	for key, name := range step.WritesWith {
		var expected *envelope.Dictionary
		if name != nil {
			expected = p.dictionaries[*name]
		}
		got := p.manager.cache.For(key)
		if (got == nil) != (expected == nil) || got != nil && got.ID() != expected.ID() {
			p.Errorf("%s is not written with %v", key, expected)
		}
	}
}

func (p *player) play(steps []step) {
	for at, step := range steps {
		switch {
		case step.Ask != nil:
			p.exchange(step)
		case step.Done != nil:
			p.end(step)
		case p.running != nil:
			p.Fatalf("step %d: the task before has not ended", at)
		default:
			p.begin(step)
		}
		p.check(step)
		if p.Failed() {
			p.Fatalf("step %d", at)
		}
	}
	if p.running != nil {
		p.Fatal("the last task has not ended")
	}
}

func TestAManagerAsksAndDoesWhatTheTranscriptsSay(t *testing.T) {
	var read struct {
		Version     int
		Transcripts []transcript
	}
	file, err := os.Open(vectors.Path("vectors/manager.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	// A step that is not understood must not go unnoticed.
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		t.Fatal(err)
	}
	if len(read.Transcripts) == 0 {
		t.Fatal("there is no transcript")
	}
	for _, each := range read.Transcripts {
		t.Run(each.Name, func(t *testing.T) { newPlayer(t, each).play(each.Steps) })
	}
}
