package catalogue

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/dictionaries"
)

// longestEnd is the time that the end of a manager may take.
const longestEnd = time.Second

// DictionaryManager has the dictionaries of one client, for any number of goroutines. It is what a codec gets its
// dictionaries from. One goroutine looks after them from the first use on, until the manager is closed or its client is.
type DictionaryManager struct {
	options    Options
	server     Server
	folder     folder
	rules      *dictionaries.Manager
	cache      *dictionaries.DictionaryCache
	connection *sharedConnection

	isAwake                  atomic.Bool
	fetched, putBack, mended atomic.Uint64

	ctx        context.Context // Ends with the manager.
	end        context.CancelFunc
	closing    chan struct{}  // Closed when the manager is about to end.
	connected  chan struct{}  // Has something after the client has connected anew.
	refreshing sync.WaitGroup // The goroutine of refreshLoop.
	running    sync.WaitGroup // Those that search.

	mutex     sync.Mutex // Guards what follows, and that nothing begins after the end.
	isClosing bool
	hasEnded  bool
	fetching  map[uint32]*fetch
}

// NewDictionaryManager makes a manager that asks a server. It returns an *envelope.OptionError for an option that cannot
// be.
func NewDictionaryManager(server Server, options Options) (*DictionaryManager, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	rules := dictionaries.NewManager(dictionaries.Settings{
		Given: options.Given, UsesCatalogue: options.IsUsed, Exclude: options.Exclude, Prefix: options.Prefix,
		Refresh: options.Refresh, Waits: options.Given != nil, LongestWait: ReplyTimeout(server), HasCopies: options.Folder != "",
	})
	ctx, end := context.WithCancel(context.Background())
	return &DictionaryManager{
		options: options, server: server, folder: folder(options.Folder), rules: rules, cache: rules.Cache(),
		connection: newSharedConnection(ctx, server), ctx: ctx, end: end,
		closing: make(chan struct{}), connected: make(chan struct{}, 1), fetching: map[uint32]*fetch{},
	}, nil
}

// For returns the dictionary that a value of this key is written with; nil for none.
func (m *DictionaryManager) For(key string) *envelope.Dictionary {
	if !m.rules.Settings().Writes() {
		return nil
	}
	m.wake()
	return m.cache.For(key)
}

// AtHand returns the dictionary of this ID; nil if it is not at hand.
func (m *DictionaryManager) AtHand(id uint32) *envelope.Dictionary {
	found := m.cache.AtHand(id)
	if found != nil {
		m.wake()
	}
	return found
}

// Held are the IDs of the dictionaries that are at hand, the least first.
func (m *DictionaryManager) Held() []uint32 { return m.cache.IDs() }

// Fetched is the number of dictionaries that were fetched, from the server or the folder.
func (m *DictionaryManager) Fetched() uint64 { return m.fetched.Load() }

// PutBack is the number of dictionaries that were not in the server any more and were put back.
func (m *DictionaryManager) PutBack() uint64 { return m.putBack.Load() }

// Mended is the number of keys of dictionaries that had something else and were overwritten.
func (m *DictionaryManager) Mended() uint64 { return m.mended.Load() }

// Connected tells that the client has connected anew, to a server that may have lost what it had.
func (m *DictionaryManager) Connected() {
	select {
	case m.connected <- struct{}{}:
	default:
	}
}

// Close ends looking after dictionaries, and waits for that. A manager that values were written with looks before whether
// their dictionaries are still there, for at most a second. What is at hand stays there.
func (m *DictionaryManager) Close() {
	m.mutex.Lock()
	if !m.isClosing {
		m.isClosing = true
		close(m.closing)
	}
	m.mutex.Unlock()
	late := time.AfterFunc(longestEnd, m.end)
	defer late.Stop()
	if m.rules.Settings().Writes() {
		go func() { m.refreshing.Wait(); m.end() }()
	} else {
		m.end()
	}
	<-m.ctx.Done()
	m.mutex.Lock()
	m.hasEnded = true
	m.mutex.Unlock()
	m.running.Wait()
	m.refreshing.Wait()
	if closer, isCloser := m.server.(io.Closer); isCloser {
		_ = closer.Close()
	}
}
