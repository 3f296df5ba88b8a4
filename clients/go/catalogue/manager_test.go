package catalogue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/vectors"
)

// memory is a server that has some keys, and says nothing while it is stopped.
type memory struct {
	mutex         sync.Mutex
	values        map[string]string
	sent          []string // Commands, without values.
	open, hasOpen int      // Connections aside: now, and the most at a time.
	isClosed      bool
	stopped       chan struct{} // Nil while it answers.
}

func (s *memory) Send(ctx context.Context, commands [][]string) ([]any, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if stopped := s.stopped; stopped != nil {
		s.mutex.Unlock()
		select {
		case <-ctx.Done():
		case <-stopped:
		}
		s.mutex.Lock()
	}
	if s.isClosed {
		return nil, ErrClosed
	}
	replies := make([]any, len(commands))
	for at, command := range commands {
		s.sent = append(s.sent, command[0]+" "+command[1])
		value, isThere := s.values[command[1]]
		switch {
		case command[0] == "SET" && !(isThere && len(command) > 3):
			s.values[command[1]] = command[2]
			replies[at] = "OK"
		case command[0] == "GET" && isThere:
			replies[at] = value
		case command[0] == "TOUCH" && isThere:
			replies[at] = int64(1)
		case command[0] == "TOUCH":
			replies[at] = int64(0)
		}
	}
	return replies, ctx.Err()
}

func (s *memory) Aside() (Server, func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open++
	s.hasOpen = max(s.hasOpen, s.open)
	var once sync.Once
	return s, func() {
		once.Do(func() {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.open--
		})
	}
}

func (s *memory) with(do func(s *memory)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	do(s)
}

// asked is how often something was sent.
func (s *memory) asked(command string) (count int) {
	s.with(func(s *memory) {
		for _, each := range s.sent {
			if strings.HasPrefix(each, command) {
				count++
			}
		}
	})
	return count
}

// opened are the connections aside that are open now.
func (s *memory) opened() (count int) {
	s.with(func(s *memory) { count = s.open })
	return count
}

func profiles(t *testing.T) *envelope.Dictionary {
	t.Helper()
	var read struct {
		Dictionaries map[string]struct{ Bytes vectors.Bytes }
	}
	vectors.Read(t, "vectors/envelopes.json", &read)
	loaded, err := envelope.LoadDictionary(read.Dictionaries["profiles"].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// newManager makes a manager whose rounds no test waits for. Its server has nothing but a catalogue with a dictionary that
// is not there.
func newManager(t *testing.T, options Options) (*DictionaryManager, *memory) {
	t.Helper()
	listed := fmt.Sprintf(`{"version": 1, "dictionaries": [{"id": %d, "pattern": "*"}]}`, profiles(t).ID())
	server := &memory{values: map[string]string{"{snugly}:dicts": listed}}
	options.Refresh = 24 * time.Hour
	made, err := NewDictionaryManager(server, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made, server
}

func eventually(t *testing.T, otherwise string, isSo func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !isSo(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal(otherwise)
		}
	}
}

func TestThoseWhoWaitShareOneSearchAndOneConnection(t *testing.T) {
	dictionary := profiles(t)
	manager, server := newManager(t, Options{})
	key := manager.rules.Settings().DictionaryKey(dictionary.ID())
	leaving, leave := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { left <- manager.FetchAll(leaving, dictionary.ID()) }()
	eventually(t, "nobody looks for it", func() bool { return server.asked("GET "+key) > 1 })
	found := make(chan *envelope.Dictionary)
	for range 16 {
		go func() {
			fetched, err := manager.Fetch(context.Background(), dictionary.ID())
			if err != nil {
				t.Error(err)
			}
			found <- fetched
		}()
	}
	// A reader that leaves does not end it for the others.
	eventually(t, "not all wait", func() bool {
		manager.mutex.Lock()
		defer manager.mutex.Unlock()
		return manager.fetching[dictionary.ID()].waiting == 17
	})
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	server.with(func(s *memory) { s.values[key] = string(dictionary.Bytes()) })
	for range 16 {
		if fetched := <-found; fetched == nil || fetched.ID() != dictionary.ID() {
			t.Errorf("found %v", fetched)
		}
	}
	if manager.Fetched() != 1 || server.hasOpen != 1 {
		t.Errorf("it was fetched %d times, over %d connections", manager.Fetched(), server.hasOpen)
	}
	eventually(t, "the connection stays open", func() bool { return server.opened() == 0 })
}

func TestNobodyLooksWhenAllHaveLeft(t *testing.T) {
	manager, server := newManager(t, Options{})
	waiting, leave := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { left <- manager.FetchAll(waiting, profiles(t).ID()) }()
	eventually(t, "nobody looks", func() bool { return server.asked("GET") > 2 })
	leave()
	<-left
	manager.running.Wait()
	if len(manager.fetching) > 0 || server.opened() > 0 {
		t.Errorf("%d are looked for, over %d connections", len(manager.fetching), server.opened())
	}
}

func TestWhatNobodyHasNamedIsWaitedForByThoseWhoHaveADictionaryOfTheirOwn(t *testing.T) {
	dictionary := profiles(t)
	reader, _ := newManager(t, Options{})
	if err := reader.FetchAll(context.Background(), 7); err != nil {
		t.Errorf("who has none waits: %v", err)
	}
	owner, _ := newManager(t, Options{Given: dictionary})
	waiting, leave := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer leave()
	if err := owner.FetchAll(waiting, 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who has one does not wait: %v", err)
	}
}

func TestClosingEndsASearchOfAServerThatSaysNothing(t *testing.T) {
	manager, server := newManager(t, Options{})
	server.stopped = make(chan struct{})
	fetched := make(chan error)
	go func() { fetched <- manager.FetchAll(context.Background(), 1) }()
	eventually(t, "nobody looks", func() bool { return server.opened() == 1 })
	manager.Close()
	if err := <-fetched; err != nil {
		t.Error(err)
	}
	if err := manager.FetchAll(context.Background(), 2); err != nil || server.opened() > 0 {
		t.Errorf("%v, and %d connections are open", err, server.opened())
	}
}

func TestAWriterThatIsClosedPutsItsDictionaryBack(t *testing.T) {
	dictionary := profiles(t)
	manager, server := newManager(t, Options{Given: dictionary})
	eventually(t, "it is not written with", func() bool { return manager.For("key") != nil })
	server.with(func(s *memory) { clear(s.values) })
	manager.Close()
	if server.asked("SET {snugly}:dict:") != 2 || manager.PutBack() != 2 || server.opened() != 0 {
		t.Errorf("%q was sent", server.sent)
	}
}

func TestNothingIsLookedAfterOnceTheClientIsClosed(t *testing.T) {
	manager, server := newManager(t, Options{Given: profiles(t)})
	server.isClosed = true
	manager.For("key")
	manager.refreshing.Wait()
	if manager.isAwake.Load() || len(server.sent) > 0 {
		t.Errorf("%q was sent", server.sent)
	}
}
