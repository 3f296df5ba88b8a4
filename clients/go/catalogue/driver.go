package catalogue

import (
	"context"
	"errors"
	"time"

	"snugly.dev/go/internal/dictionaries"
)

// longestWait is the time that a server has to answer.
const longestWait = 10 * time.Second

// drive does what a task asks for over a connection, and returns its outcome. It breaks the task off with an error if ctx
// ends, or with ErrClosed if the client is closed.
func drive[T any](ctx context.Context, m *DictionaryManager, connection sender, task *dictionaries.Task[T]) (outcome T, err error) {
	for request := range task.Requests(time.Now()) {
		m.note(task.Events())
		var answer dictionaries.Answer
		if answer, err = m.answer(ctx, connection, request); err != nil {
			break
		}
		answer.Now = time.Now()
		task.Answer(answer)
	}
	m.note(task.Events())
	return task.Outcome(), err
}

// answer does what a request says.
func (m *DictionaryManager) answer(ctx context.Context, connection sender, request dictionaries.Request) (answer dictionaries.Answer, err error) {
	switch request := request.(type) {
	case dictionaries.Send:
		answer.Replies, answer.Lost = send(ctx, connection, request.Commands)
		if errors.Is(answer.Lost, ErrClosed) {
			return answer, ErrClosed
		}
	case dictionaries.Sleep:
		sleep(ctx, request.Pause)
	case dictionaries.ReadCopies:
		answer.Copies = m.readCopies(request.IDs)
	case dictionaries.WriteCopies:
		m.writeCopies(request.Dictionaries)
	case dictionaries.RemoveCopies:
		m.folder.remove(request.IDs)
	}
	return answer, ctx.Err()
}

func send(ctx context.Context, connection sender, commands [][]string) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	replies, err := connection.Send(ctx, commands)
	for at := range replies {
		replies[at] = classified(replies[at])
	}
	return replies, err
}

func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// note counts and logs what a task tells.
func (m *DictionaryManager) note(events []dictionaries.Event) {
	for _, event := range events {
		switch event.Kind {
		case dictionaries.Warned:
			m.log(event.Warning)
		case dictionaries.Fetched:
			m.fetched.Add(1)
		case dictionaries.PutBack:
			m.putBack.Add(1)
		case dictionaries.Mended:
			m.mended.Add(1)
		case dictionaries.CatalogueLost:
			// Only who trains dictionaries has learned something that is of no use any more.
		}
	}
}

// warn logs a warning, each once.
func (m *DictionaryManager) warn(warning string) {
	if m.rules.IsNewWarning(warning) {
		m.log(warning)
	}
}

func (m *DictionaryManager) log(warning string) { m.options.Logger.Warn("snugly: " + warning) }
