package compression

// RefusedError is a command that the server would run on compressed bytes. It has not been sent.
type RefusedError struct {
	// Command is its name in capitals.
	Command string
	// Message says why, as every client does.
	Message string
}

// Error is the message.
func (e *RefusedError) Error() string { return e.Message }
