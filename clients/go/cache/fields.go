package cache

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/tinylib/msgp/msgp"
)

// checkFields holds the generated code of a type and of all types in it against their fields. It returns a *TypeError if
// a field has no msg tag, so that renaming it in Go would rename it in the cache, or is unknown to the code, so that
// the cache would drop it in silence. Both are seen in what the code makes of an empty value.
func checkFields(kind reflect.Type) error {
	check := fieldCheck{seen: map[reflect.Type]bool{}}
	check.kind(kind)
	if len(check.problems) == 0 {
		return nil
	}
	return &TypeError{Type: kind.String(), Problems: check.problems}
}

type fieldCheck struct {
	seen     map[reflect.Type]bool
	problems []string
}

// kind looks at a type, and at those that it is made of.
func (c *fieldCheck) kind(kind reflect.Type) {
	if c.seen[kind] {
		return
	}
	c.seen[kind] = true
	switch kind.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		c.kind(kind.Elem())
	case reflect.Struct:
		c.structure(kind)
	}
}

func (c *fieldCheck) structure(kind reflect.Type) {
	generated, isGenerated := reflect.New(kind).Interface().(msgp.Marshaler)
	if !isGenerated {
		// A type of no name, whose fields the code of the outer type writes, or one of another package, which a shim
		// or a directive does: time.Time, decimals.
		if kind.Name() == "" {
			c.tags(kind, nil)
		}
		return
	}
	empty, err := generated.MarshalMsg(nil)
	switch {
	case err != nil:
	case msgp.NextType(empty) == msgp.MapType:
		c.tags(kind, keysOf(empty))
	case msgp.NextType(empty) == msgp.ArrayType:
		// A tuple, which stores no names.
		for at := range kind.NumField() {
			c.kind(kind.Field(at).Type)
		}
	}
	// What is left is code by hand.
}

// tags looks at the fields of a struct, whose names in MessagePack are given unless nobody knows them.
func (c *fieldCheck) tags(kind reflect.Type, stored map[string]bool) {
	for at := range kind.NumField() {
		field := kind.Field(at)
		tag := field.Tag.Get("msg")
		if !field.IsExported() || tag == "-" || isIgnored(field.Type) {
			continue
		}
		name, flags, _ := strings.Cut(tag, ",")
		switch {
		case name != "":
			if stored != nil && !stored[name] && !strings.Contains(flags, "omit") {
				c.report(kind, field, "is unknown to the generated code, which would drop it: run go generate")
			}
		case strings.Contains(flags, "flatten") || !stored[field.Name] && isNamedByJSON(field, stored):
		default:
			c.report(kind, field, fmt.Sprintf("has no msg tag: name it, as in `msg:%q`", snakeCase(field.Name)))
		}
		c.kind(field.Type)
	}
}

func (c *fieldCheck) report(kind reflect.Type, field reflect.StructField, problem string) {
	owner := kind.Name()
	if owner == "" {
		owner = "struct"
	}
	c.problems = append(c.problems, fmt.Sprintf("%s.%s %s", owner, field.Name, problem))
}

// isIgnored is for what generated code leaves out.
func isIgnored(kind reflect.Type) bool {
	return kind.Kind() == reflect.Chan || kind.Kind() == reflect.Func
}

// isNamedByJSON tells whether a field is stored under the name of its json tag, as the directive msgp:tag makes it.
func isNamedByJSON(field reflect.StructField, stored map[string]bool) bool {
	name, flags, _ := strings.Cut(field.Tag.Get("json"), ",")
	return stored[name] || name != "" && stored != nil && strings.Contains(flags, "omit")
}

// keysOf gives the keys of a map that is the code's own work.
func keysOf(encoded []byte) map[string]bool {
	keys := map[string]bool{}
	count, rest, err := msgp.ReadMapHeaderBytes(encoded)
	for ; count > 0 && err == nil; count-- {
		var key []byte
		if key, rest, err = msgp.ReadMapKeyZC(rest); err == nil {
			keys[string(key)] = true
			rest, err = msgp.Skip(rest)
		}
	}
	return keys
}

// snakeCase makes idempotency_key of IdempotencyKey, and area_id of AreaID.
func snakeCase(name string) string {
	var snake strings.Builder
	letters := []rune(name)
	for at, letter := range letters {
		endsWord := at > 0 && !unicode.IsUpper(letters[at-1])
		beginsWord := at > 0 && at+1 < len(letters) && unicode.IsLower(letters[at+1])
		if unicode.IsUpper(letter) && (endsWord || beginsWord) {
			snake.WriteByte('_')
		}
		snake.WriteRune(unicode.ToLower(letter))
	}
	return snake.String()
}
