package cache

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tinylib/msgp/msgp"
)

// checkFields holds the generated code of a type and of all types in it against their fields. It returns a *TypeError if
// a field has no msg tag, so that renaming it in Go would rename it in the cache, or is unknown to the code, so that
// the cache would drop it in silence. Both are seen in what the code makes of an empty value, and of one that is empty but
// for a field that may be omitted.
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
	// The rest is code by hand.
}

// tags looks at the fields of a struct, whose names in MessagePack are given unless nobody knows them.
func (c *fieldCheck) tags(kind reflect.Type, stored map[string]bool) {
	for at := range kind.NumField() {
		field := kind.Field(at)
		tag := field.Tag.Get("msg")
		if tag == "-" || isIgnored(field.Type) {
			continue
		}
		name, flags, _ := strings.Cut(tag, ",")
		if !field.IsExported() {
			if hasPromotedFields(field) && stored != nil && !stored[cmp.Or(name, field.Name)] {
				c.report(kind, field, "is not exported, so the generated code drops its fields: export it, or tag it `msg:\"-\"`")
			}
			continue
		}
		isKnown := func(name, flags string) bool {
			return stored[name] || strings.Contains(flags, "omit") && !isDropped(kind, at, name)
		}
		switch {
		case name != "":
			if stored != nil && !isKnown(name, flags) {
				c.report(kind, field, "is unknown to the generated code, which would drop it: run go generate")
			}
		case strings.Contains(flags, "flatten"):
		case stored != nil && !stored[field.Name] && isKnown(namedByJSON(field)):
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

// namedByJSON gives name and flags of a field's json tag, which the directive msgp:tag puts in the place of the msg tag.
func namedByJSON(field reflect.StructField) (name, flags string) {
	name, flags, _ = strings.Cut(field.Tag.Get("json"), ",")
	return name, flags
}

// hasPromotedFields is for a field whose own fields encoding/json takes for those of the outer struct.
func hasPromotedFields(field reflect.StructField) bool {
	kind := field.Type
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return field.Anonymous && kind.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(kind), func(inner reflect.StructField) bool {
		return inner.IsExported()
	})
}

// isDropped tells whether the code of a struct leaves a field out even if it has a value. Where that cannot be seen, as no
// value can be made up or code by hand does not like it, it does not.
func isDropped(kind reflect.Type, at int, name string) (isDropped bool) {
	value := reflect.New(kind)
	field := value.Elem().Field(at)
	fillIn(field)
	if field.IsZero() {
		return false
	}
	defer func() {
		if recover() != nil {
			isDropped = false
		}
	}()
	encoded, err := value.Interface().(msgp.Marshaler).MarshalMsg(nil)
	return err == nil && !keysOf(encoded)[name]
}

// fillIn gives a value to what has none, if it is of a kind that is known.
func fillIn(empty reflect.Value) {
	kind := empty.Type()
	switch kind.Kind() {
	case reflect.Bool:
		empty.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		empty.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		empty.SetUint(1)
	case reflect.Float32, reflect.Float64:
		empty.SetFloat(1)
	case reflect.Complex64, reflect.Complex128:
		empty.SetComplex(1)
	case reflect.String:
		empty.SetString("1")
	case reflect.Slice:
		empty.Set(reflect.MakeSlice(kind, 1, 1))
	case reflect.Map:
		empty.Set(reflect.MakeMap(kind))
	case reflect.Pointer:
		empty.Set(reflect.New(kind.Elem()))
	case reflect.Array:
		if kind.Len() > 0 {
			fillIn(empty.Index(0))
		}
	case reflect.Interface:
		if kind.NumMethod() == 0 {
			empty.Set(reflect.ValueOf(1))
		}
	case reflect.Struct:
		fillInStructure(empty)
	}
}

func fillInStructure(empty reflect.Value) {
	if when, isTime := empty.Addr().Interface().(*time.Time); isTime {
		*when = time.Unix(1, 0)
		return
	}
	for at := range empty.NumField() {
		if empty.Type().Field(at).IsExported() {
			fillIn(empty.Field(at))
		}
	}
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
