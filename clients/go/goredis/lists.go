package goredis

// Some types of go-redis hold a reply as maps. Shapes find values in lists, as the server sends them to clients of RESP2, so
// these are made lists, and maps again.

// valued is a command that holds a reply of some type.
type valued[T any] interface {
	Val() T
	SetVal(value T)
}

// throughList restores the values in the reply of a command, as a list.
func throughList[T any](r *restoration, text restoreText, command valued[T], list func(T) []any, back func([]any) T) error {
	elements := list(command.Val())
	var reply any = elements
	err := r.walk(&reply, text)
	command.SetVal(back(elements))
	return err
}

func listOf[T any](elements []T) []any {
	list := make([]any, len(elements))
	for at, element := range elements {
		list[at] = element
	}
	return list
}

func textsOf(set map[string]struct{}) (list []any) {
	for text := range set {
		list = append(list, text)
	}
	return list
}

func setOf(list []any) map[string]struct{} {
	set := make(map[string]struct{}, len(list))
	for _, text := range list {
		// A text that is missed is left out.
		if text, isThere := text.(string); isThere {
			set[text] = struct{}{}
		}
	}
	return set
}

// pairsOf are keys and values in turn.
func pairsOf[V any](fields map[string]V) []any {
	list := make([]any, 0, 2*len(fields))
	for name, value := range fields {
		list = append(list, name, value)
	}
	return list
}

func mapOf[V any](list []any) map[string]V {
	fields := make(map[string]V, len(list)/2)
	for at := 0; at < len(list); at += 2 {
		// A text that is missed is left out.
		value, isThere := list[at+1].(V)
		if isThere || any(value) == nil {
			fields[list[at].(string)] = value
		}
	}
	return fields
}

// rowsOf are rows of a key and a value.
func rowsOf(fields map[string]any) (list []any) {
	for name, value := range fields {
		list = append(list, []any{name, value})
	}
	return list
}

func mapOfRows(list []any) map[string]any {
	fields := make(map[string]any, len(list))
	for _, row := range list {
		row := row.([]any)
		fields[row[0].(string)] = row[1]
	}
	return fields
}

func pairsOfEach[V any](maps []map[string]V) []any {
	list := make([]any, len(maps))
	for at, fields := range maps {
		list[at] = pairsOf(fields)
	}
	return list
}

func mapOfEach[V any](list []any) []map[string]V {
	maps := make([]map[string]V, len(list))
	for at, pairs := range list {
		maps[at] = mapOf[V](pairs.([]any))
	}
	return maps
}
