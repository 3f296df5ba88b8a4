package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"snugly.dev/go/envelope"
)

// folder is where copies of fetched dictionaries are kept, across restarts; empty for nowhere.
type folder string

func (f folder) path(id uint32) string { return filepath.Join(string(f), fmt.Sprintf("%d.zdict", id)) }

// read gives the copy of a dictionary; nil if there is none.
func (f folder) read(id uint32) ([]byte, error) {
	if f == "" {
		return nil, nil
	}
	content, err := os.ReadFile(f.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// write keeps a copy; another process never sees half of it.
func (f folder) write(dictionary *envelope.Dictionary) (err error) {
	if f == "" {
		return nil
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(string(f), "draft")
	if err != nil {
		return err
	}
	_, err = draft.Write(dictionary.Bytes())
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), f.path(dictionary.ID()))
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// remove removes the copies of some dictionaries, if there are any.
func (f folder) remove(ids []uint32) {
	if f == "" {
		return
	}
	for _, id := range ids {
		// What cannot be removed is not used either: it is forgotten.
		_ = os.Remove(f.path(id))
	}
}
