package cache

import (
	"sync"
	"time"
)

// revalidations are the stale entries that are loaded in the background, or have just failed to be.
type revalidations struct {
	room chan struct{}
	mu   sync.Mutex
	keys map[string]struct{}
}

// begin tells whether the caller is to load a key: nobody else does, and there is room for one more.
func (r *revalidations) begin(key string) (isMine, isFull bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, isBusy := r.keys[key]; isBusy {
		return false, false
	}
	select {
	case r.room <- struct{}{}:
	default:
		return false, true
	}
	if r.keys == nil {
		r.keys = map[string]struct{}{}
	}
	r.keys[key] = struct{}{}
	return true, false
}

// end makes room for another key, and lets this one be loaded again after a time.
func (r *revalidations) end(key string, after time.Duration) {
	<-r.room
	if after == 0 {
		r.forget(key)
		return
	}
	time.AfterFunc(after, func() { r.forget(key) })
}

func (r *revalidations) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, key)
}
