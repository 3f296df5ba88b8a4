package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"snugly.dev/go/envelope"
	"snugly.dev/go/internal/dictionaries"
)

// folder has copies of fetched dictionaries, across restarts.
type folder string

func (f folder) path(id uint32) string { return filepath.Join(string(f), fmt.Sprintf("%d.zdict", id)) }

// write keeps a copy; another process never sees half of it.
func (f folder) write(dictionary *envelope.Dictionary) (err error) {
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
	for _, id := range ids {
		// A file that cannot be removed is not used either: its dictionary is forgotten.
		_ = os.Remove(f.path(id))
	}
}

func (m *DictionaryManager) readCopies(ids []uint32) (copies []dictionaries.Copy) {
	for _, id := range ids {
		content, err := os.ReadFile(m.folder.path(id))
		switch {
		case err == nil:
			copies = append(copies, dictionaries.Copy{ID: id, Place: m.folder.path(id), Content: content})
		case !errors.Is(err, fs.ErrNotExist):
			m.warn(fmt.Sprintf("copies of dictionaries cannot be read: %v", err))
		}
	}
	return copies
}

func (m *DictionaryManager) writeCopies(all []*envelope.Dictionary) {
	for _, each := range all {
		if err := m.folder.write(each); err != nil {
			m.warn(fmt.Sprintf("copies of dictionaries cannot be kept: %v", err))
		}
	}
}
