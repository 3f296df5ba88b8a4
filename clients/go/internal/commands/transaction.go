package commands

// Boundary is the effect of a command on a transaction.
type Boundary int

const (
	// None is that of all other commands.
	None Boundary = iota
	// Begins is that of MULTI.
	Begins
	// Runs is that of EXEC.
	Runs
	// Ends is that of a command that ends a transaction without running it.
	Ends
)

var boundaries = [...]struct {
	name     string
	boundary Boundary
}{{"MULTI", Begins}, {"EXEC", Runs}, {"DISCARD", Ends}, {"RESET", Ends}}

// BoundaryOf is that of the command of a name, in any case.
func BoundaryOf(name string) Boundary {
	for _, each := range boundaries {
		if IsName(name, each.name) {
			return each.boundary
		}
	}
	return None
}
