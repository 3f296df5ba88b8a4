package catalogue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"snugly.dev/go/envelope"
)

const (
	// mostWarned is how many warnings are remembered.
	mostWarned = 1000
	// longestWait is for a server that says nothing.
	longestWait = 10 * time.Second
)

// Keeper has the dictionaries of one client, for any number of goroutines. It is what a codec gets its dictionaries from.
// One goroutine looks after them from the first use on, until the keeper is closed or its client is.
type Keeper struct {
	options Options
	server  Server
	folder  folder
	shelf   *shelf
	search  *search

	isAwake             atomic.Bool
	offUntil            atomic.Int64 // Until when dictionaries are not to be had, for want of permission, in Unix nanoseconds.
	fetched, hasPutBack atomic.Uint64

	ctx     context.Context // Ends with the keeper.
	end     context.CancelFunc
	keeping sync.WaitGroup // The goroutine that looks after dictionaries.

	mutex  sync.Mutex // Guards what follows, changes of the shelf, and that nothing begins after the end.
	warned map[string]bool

	// These are for the goroutine that looks after dictionaries.
	due         time.Time // When the catalogue is to be read again.
	wanted      []uint32
	unkeptUntil time.Time // Until when they are not kept, since that was refused.
}

// NewKeeper makes a keeper that asks a server. It returns an *envelope.OptionError for an option that cannot be.
func NewKeeper(server Server, options Options) (*Keeper, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	keeper := &Keeper{options: options, server: server, folder: folder(options.Folder), warned: map[string]bool{}}
	keeper.ctx, keeper.end = context.WithCancel(context.Background())
	keeper.shelf = newShelf(&keeper.options)
	keeper.search = newSearch(keeper.ctx, server, options.round(), keeper.look)
	return keeper, nil
}

// For returns the dictionary that a value of this key is written with; nil for none.
func (k *Keeper) For(key string) *envelope.Dictionary {
	if !k.options.writes() {
		return nil
	}
	k.wake()
	return k.shelf.forKey(key)
}

// AtHand returns the dictionary of this ID; nil if it is not at hand.
func (k *Keeper) AtHand(id uint32) *envelope.Dictionary {
	found := k.shelf.atHand(id)
	if found != nil {
		k.wake()
	}
	return found
}

// Fetch gets a dictionary from the server, once for all who wait for it. It takes up to one and a half rounds, or as long
// as ctx allows. The error is that of ctx, or says where the dictionary should have been.
func (k *Keeper) Fetch(ctx context.Context, id uint32) (*envelope.Dictionary, error) {
	if err := k.FetchAll(ctx, id); err != nil {
		return nil, err
	}
	found := k.AtHand(id)
	if found == nil {
		return nil, fmt.Errorf("nothing could be fetched from the key %q: if it is gone there, store the value anew", k.options.dictionaryKey(id))
	}
	return found, nil
}

// FetchAll is Fetch for several at a time, so that those which are not there take no longer than one does. They are at
// hand then, or known not to be there. The error is that of ctx.
func (k *Keeper) FetchAll(ctx context.Context, ids ...uint32) error {
	if k.isOff() {
		return nil
	}
	return k.search.wait(ctx, ids...)
}

// Fetched is how many dictionaries were fetched, from the server or the folder.
func (k *Keeper) Fetched() uint64 { return k.fetched.Load() }

// PutBack is how many dictionaries were not in the server any more and were put back.
func (k *Keeper) PutBack() uint64 { return k.hasPutBack.Load() }

// Close ends looking after dictionaries, and waits for that. What is at hand stays there.
func (k *Keeper) Close() {
	k.mutex.Lock()
	k.end()
	k.mutex.Unlock()
	k.search.close()
	k.keeping.Wait()
}

// wake begins to look after dictionaries, unless somebody does.
func (k *Keeper) wake() {
	if k.isAwake.Load() || !k.isAwake.CompareAndSwap(false, true) {
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.ctx.Err() == nil {
		k.keeping.Add(1)
		go k.keep()
	}
}

// keep looks after dictionaries, round after round.
func (k *Keeper) keep() {
	defer k.keeping.Done()
	for {
		if errors.Is(k.round(k.ctx), ErrClosed) {
			k.isAwake.Store(false)
			return
		}
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(k.options.round()):
		}
	}
}

func now() time.Duration { return time.Duration(time.Now().UnixNano()) }

// isOff says whether dictionaries are not to be had, for want of permission. It is asked again after a refresh.
func (k *Keeper) isOff() bool { return time.Now().UnixNano() < k.offUntil.Load() }

// change changes the shelf.
func (k *Keeper) change(with func(shelf *shelf, now time.Duration)) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	with(k.shelf, now())
}

// round does what is to be done each time. The error is the last one, if the server could not be asked.
func (k *Keeper) round(ctx context.Context) error {
	if k.isOff() || !k.options.writes() && len(k.shelf.ids()) == 0 {
		return nil
	}
	var failed error
	if !time.Now().Before(k.due) {
		failed = k.read(ctx)
	}
	for _, id := range k.wanted {
		if !k.isOff() && !k.shelf.isHeld(id) {
			_, failed = k.try(ctx, k.server, id)
		}
	}
	k.change((*shelf).choose)
	if k.isOff() || time.Now().Before(k.unkeptUntil) {
		return failed
	}
	return errors.Join(failed, k.keepThere(ctx))
}

// read reads the catalogue. It returns an error if the server did not give what there is; one that is refused counts as
// none, with a warning.
func (k *Keeper) read(ctx context.Context) error {
	content, err := k.get(ctx, k.server, k.options.catalogueKey())
	if err != nil {
		return err
	}
	k.due = time.Now().Add(k.options.Refresh)
	if k.options.Given == nil {
		// Permission may have been missing before.
		k.change(func(shelf *shelf, now time.Duration) { shelf.allow(true, now) })
	}
	var listed document
	if content != nil {
		if listed, err = decode(content); err != nil {
			k.warn("values are written without the dictionaries of the catalogue", err)
			listed = document{}
		}
	}
	k.change(func(shelf *shelf, now time.Duration) { k.wanted = shelf.list(listed, now) })
	k.folder.remove(listed.forgotten)
	return nil
}

// get reads a key. Where that is not allowed, dictionaries are off.
func (k *Keeper) get(ctx context.Context, way Server, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	content, err := way.Get(ctx, key)
	if isDenied(err) {
		k.offUntil.Store(time.Now().Add(k.options.Refresh).UnixNano())
		k.change(func(shelf *shelf, now time.Duration) { shelf.allow(false, now) })
		k.warn(fmt.Sprintf("dictionaries are off, since the keys %s:* may not be read", k.options.Prefix), err)
	}
	return content, err
}

// keepThere has the server see that what is at hand is in use, and puts back what is gone.
func (k *Keeper) keepThere(ctx context.Context) error {
	gone, err := k.touch(ctx)
	if err == nil && len(gone) > 0 {
		// It may be gone because it is to be forgotten.
		if err = k.read(ctx); err == nil {
			err = k.putBack(ctx, gone)
		}
	}
	if isDenied(err) && !k.isOff() {
		k.unkeptUntil = time.Now().Add(k.options.Refresh)
		k.note(k.givenID(), false)
		k.warn("dictionaries are not kept from eviction, since that is not allowed", err)
	}
	return err
}

// touch returns which dictionaries that are at hand the server does not have.
func (k *Keeper) touch(ctx context.Context) (gone []uint32, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	for _, id := range k.shelf.ids() {
		isThere, err := k.server.Touch(ctx, k.options.dictionaryKey(id))
		if err != nil {
			return nil, err
		}
		k.note(id, isThere)
		if !isThere {
			gone = append(gone, id)
		}
	}
	_, err = k.server.Touch(ctx, k.options.catalogueKey())
	return gone, err
}

func (k *Keeper) putBack(ctx context.Context, gone []uint32) error {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	for _, id := range gone {
		// One that was given is at hand, whatever the catalogue says.
		dictionary := k.shelf.atHand(id)
		if dictionary == nil || k.isForgotten(id) {
			continue
		}
		isSet, err := k.server.SetNX(ctx, k.options.dictionaryKey(id), dictionary.Bytes())
		switch {
		case err == nil:
			if isSet {
				k.hasPutBack.Add(1)
			}
			k.note(id, true)
		case isDenied(err) || !isReply(err):
			return err
		default:
			// The server may take another one, and this one another time.
			k.warn("dictionaries are not kept from eviction, since the server does not take them", err)
		}
	}
	return nil
}

func (k *Keeper) isForgotten(id uint32) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.shelf.isForgotten(id)
}

func (k *Keeper) givenID() uint32 {
	if k.options.Given == nil {
		return 0
	}
	return k.options.Given.ID()
}

// note has the dictionary that was given written with only while it is beside the data, and not forgotten.
func (k *Keeper) note(id uint32, isThere bool) {
	if k.options.Given == nil || id != k.options.Given.ID() {
		return
	}
	k.change(func(shelf *shelf, now time.Duration) { shelf.allow(isThere && !shelf.isForgotten(id), now) })
}

// look looks for a dictionary that somebody waits for.
func (k *Keeper) look(ctx context.Context, way Server, id uint32) (isFound, isHopeless bool) {
	if k.isOff() {
		return false, true
	}
	if k.shelf.atHand(id) != nil {
		return true, false
	}
	isFound, err := k.try(ctx, way, id)
	return isFound, k.isOff() || errors.Is(err, ErrClosed)
}

// try looks for a dictionary, and takes it to hand.
func (k *Keeper) try(ctx context.Context, way Server, id uint32) (isFound bool, err error) {
	loaded := k.copyOf(id)
	if loaded == nil {
		key := k.options.dictionaryKey(id)
		content, err := k.get(ctx, way, key)
		if content == nil || err != nil {
			return false, err
		}
		if loaded = k.proven(id, content, key); loaded == nil {
			return false, nil
		}
		if err := k.folder.write(loaded); err != nil {
			k.warn("copies of dictionaries cannot be kept", err)
		}
	}
	k.change(func(shelf *shelf, now time.Duration) { shelf.hold(loaded, now) })
	k.fetched.Add(1)
	return true, nil
}

func (k *Keeper) copyOf(id uint32) *envelope.Dictionary {
	content, err := k.folder.read(id)
	if err != nil {
		k.warn("copies of dictionaries cannot be read", err)
	}
	if content == nil {
		return nil
	}
	return k.proven(id, content, k.folder.path(id))
}

// proven is the dictionary, if that is what it is.
func (k *Keeper) proven(id uint32, content []byte, where string) *envelope.Dictionary {
	loaded, err := envelope.LoadDictionary(content)
	if err == nil && loaded.ID() != id {
		err = fmt.Errorf("it is the dictionary %d", loaded.ID())
	}
	if err != nil {
		k.warn(fmt.Sprintf("what is at %s is not used", where), err)
		return nil
	}
	return loaded
}

// warn logs a warning, each once.
func (k *Keeper) warn(what string, err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	text := what + ": " + err.Error()
	if k.warned[text] || len(k.warned) >= mostWarned {
		return
	}
	k.warned[text] = true
	k.options.Logger.Warn("snugly: " + text)
}

// Held are the IDs of the dictionaries that are at hand, the least first.
func (k *Keeper) Held() []uint32 {
	ids := k.shelf.ids()
	slices.Sort(ids)
	return ids
}
