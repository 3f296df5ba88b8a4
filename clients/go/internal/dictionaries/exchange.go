package dictionaries

import (
	"fmt"
	"iter"
	"time"

	"snugly.dev/go/envelope"
)

// Command is a command with its arguments. The second of these is its key.
type Command = []string

// Request is something that the driver of a task is to do: a Send, Sleep, ReadCopies, WriteCopies or RemoveCopies.
type Request interface{ isRequest() }

// Send asks for commands to be sent in one round trip. The answer has Replies, or that the server was Lost.
type Send struct{ Commands []Command }

// Sleep asks to wait.
type Sleep struct{ Pause time.Duration }

// ReadCopies asks for the copies of dictionaries, those that there are. The answer has Copies.
type ReadCopies struct{ IDs []uint32 }

// WriteCopies asks to keep copies of dictionaries.
type WriteCopies struct{ Dictionaries []*envelope.Dictionary }

// RemoveCopies asks to remove the copies of dictionaries.
type RemoveCopies struct{ IDs []uint32 }

func (Send) isRequest()         {}
func (Sleep) isRequest()        {}
func (ReadCopies) isRequest()   {}
func (WriteCopies) isRequest()  {}
func (RemoveCopies) isRequest() {}

// Answer is the outcome of a request.
type Answer struct {
	// Now is the time of the answer.
	Now time.Time
	// Replies has one for each command, in their order: nil for null, a string, an int64, a *Failure, or anything else.
	Replies []any
	// Lost is the reason why the commands may not have reached the server; nil if there are replies.
	Lost error
	// Copies are those that there are.
	Copies []Copy
}

// Copy is the copy of a dictionary.
type Copy struct {
	ID uint32
	// Place is its file, for messages.
	Place string
	// Content has its bytes, right or wrong.
	Content []byte
}

// Failure is the reason why a command has no reply.
type Failure struct {
	Kind   FailureKind
	Reason string
}

// FailureKind says who is to blame.
type FailureKind int

const (
	// Lost is for a connection that is not there, or was lost.
	Lost FailureKind = iota
	// Denied is for a user who may not do it (NOPERM).
	Denied
	// Refused is for any other error that the server replied.
	Refused
)

// Error is the reason.
func (f *Failure) Error() string { return f.Reason }

// Event is something that people or statistics are told.
type Event struct {
	Kind EventKind
	// Warning is the text of a Warned.
	Warning string
}

// EventKind says what has happened.
type EventKind int

const (
	// Warned is a warning for the log.
	Warned EventKind = iota
	// Fetched is a dictionary that was fetched, or whose copy was read.
	Fetched
	// PutBack is a dictionary that was gone, and is beside the data again.
	PutBack
	// Mended is a dictionary in whose place something else was, which was overwritten.
	Mended
	// CatalogueLost says that the catalogue is gone: all data was deleted.
	CatalogueLost
)

// Task is a procedure that makes requests of its driver. It is run once, by one goroutine.
type Task[T any] struct {
	exchange exchange
	steps    func(*exchange) T
	outcome  T
}

func newTask[T any](steps func(*exchange) T) *Task[T] { return &Task[T]{steps: steps} }

// Requests are made from a moment on, one after the other. Answer is called for each before the next one; a driver that
// stops instead breaks the task off.
func (t *Task[T]) Requests(now time.Time) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		t.exchange.now, t.exchange.yield = now, yield
		t.outcome = t.steps(&t.exchange)
	}
}

// Answer gives the outcome of the last request.
func (t *Task[T]) Answer(answer Answer) { t.exchange.answer = answer }

// Events are those since the last call.
func (t *Task[T]) Events() []Event {
	events := t.exchange.events
	t.exchange.events = nil
	return events
}

// Outcome is that of a task that has made all of its requests.
func (t *Task[T]) Outcome() T { return t.outcome }

// exchange is the side of a task.
type exchange struct {
	now      time.Time // Of the last answer.
	yield    func(Request) bool
	answer   Answer
	events   []Event
	isBroken bool // The driver has stopped, and nothing can be asked any more.
}

// ask makes a request. It returns false if the task was broken off.
func (x *exchange) ask(request Request) bool {
	if x.isBroken {
		return false
	}
	if !x.yield(request) {
		x.isBroken = true
		return false
	}
	x.now = x.answer.Now
	return true
}

// sleep waits. It returns false if the task was broken off.
func (x *exchange) sleep(pause time.Duration) bool { return x.ask(Sleep{pause}) }

// sendAll sends commands in one round trip, and returns as many replies. The error is a *Failure of the kind Lost.
func (x *exchange) sendAll(commands []Command) ([]any, error) {
	switch {
	case !x.ask(Send{commands}):
		return nil, &Failure{Lost, "it was broken off"}
	case x.answer.Lost != nil:
		return nil, &Failure{Lost, x.answer.Lost.Error()}
	case len(x.answer.Replies) != len(commands):
		return nil, &Failure{Lost, fmt.Sprintf("%d commands have %d replies", len(commands), len(x.answer.Replies))}
	}
	return x.answer.Replies, nil
}

// send sends one command. The error is a *Failure.
func (x *exchange) send(command ...string) (any, error) {
	replies, err := x.sendAll([]Command{command})
	if err != nil {
		return nil, err
	}
	if failure, isFailure := replies[0].(*Failure); isFailure {
		return nil, failure
	}
	return replies[0], nil
}

func (x *exchange) readCopies(ids []uint32) []Copy {
	if !x.ask(ReadCopies{ids}) {
		return nil
	}
	return x.answer.Copies
}

func (x *exchange) tell(kind EventKind) { x.events = append(x.events, Event{Kind: kind}) }

// isSomething tells of a reply whether the command has found or done something.
func isSomething(reply any) bool { return reply != nil && reply != int64(0) }

// kindOf is the kind of a failure.
func kindOf(err error) FailureKind {
	if failure, isFailure := err.(*Failure); isFailure {
		return failure.Kind
	}
	return Lost
}
