package commands

import (
	"encoding/json"
	"fmt"
)

// Shape says where a reply has values.
type Shape struct {
	kind  shapeKind
	inner *Shape
	at    int // Of isElement.
	key   keySource
}

type shapeKind int

const (
	isValue shapeKind = iota
	isEach
	isElement
	isPairs
	isTransaction
)

// keySource is the source of the name of the key to which a value belongs.
type keySource string

const (
	fromArgument keySource = "argument"
	fromReply    keySource = "reply"
)

func compileShapes(documents map[string]json.RawMessage) map[string]*Shape {
	// Shapes are named before they are known, so all are there first.
	shapes := map[string]*Shape{}
	for name := range documents {
		shapes[name] = &Shape{}
	}
	named := func(name string) *Shape {
		if shapes[name] == nil {
			panic(fmt.Sprintf("the command table has no shape %s", name))
		}
		return shapes[name]
	}
	for name, document := range documents {
		var word string
		var group struct {
			Each, Is, Pairs string
			At              int
			Key             keySource
		}
		if json.Unmarshal(document, &word) != nil {
			if err := json.Unmarshal(document, &group); err != nil {
				panic(fmt.Sprintf("the command table has an unknown shape: %s", document))
			}
		}
		shape := shapes[name]
		switch {
		case word == "value":
			shape.kind = isValue
		case word == "transaction":
			shape.kind = isTransaction
		case group.Each != "":
			*shape = Shape{kind: isEach, inner: named(group.Each), key: group.Key}
		case group.Is != "":
			*shape = Shape{kind: isElement, inner: named(group.Is), at: group.At, key: group.Key}
		case group.Pairs != "":
			*shape = Shape{kind: isPairs, inner: named(group.Pairs), key: group.Key}
		default:
			panic(fmt.Sprintf("the command table has an unknown shape: %s", document))
		}
	}
	return shapes
}

// IsValue tells whether the whole reply is a value.
func (s *Shape) IsValue() bool { return s.kind == isValue }

// IsOfArguments tells whether the reply is an array whose elements belong to the keys of the arguments.
func (s *Shape) IsOfArguments() bool { return s.kind == isEach && s.key == fromArgument }

// Reply is a reply as a client library has it.
type Reply interface {
	// Text gives a bulk string; false for anything else.
	Text() (string, bool)
	// Elements are those of an array; for a map its keys and values in turn.
	Elements() (elements []Reply, isMap, isArray bool)
}

// Restore decodes a value of a reply, which belongs to a key if that is known. It is called for each in turn.
type Restore func(reply Reply, key string) error

// Walk calls restore for each value in a reply. keys are those of the arguments. What is not as the shape says is left
// alone.
func (s *Shape) Walk(reply Reply, keys []string, restore Restore) error {
	key := ""
	if len(keys) > 0 {
		key = keys[0]
	}
	return s.walk(reply, key, keys, restore)
}

func (s *Shape) walk(reply Reply, key string, keys []string, restore Restore) error {
	if s.kind == isValue {
		if _, isText := reply.Text(); !isText {
			return nil
		}
		return restore(reply, key)
	}
	elements, isMap, isArray := reply.Elements()
	switch {
	case s.kind == isTransaction:
		return nil
	case !isArray && !isMap:
		if s.kind == isEach {
			return s.inner.walk(reply, key, keys, restore)
		}
		return nil
	case s.kind == isEach:
		return s.each(elements, key, keys, restore)
	case s.kind == isElement:
		if s.at >= len(elements) {
			return nil
		}
		return s.inner.walk(elements[s.at], s.named(elements[0], key), keys, restore)
	}
	return s.pairs(elements, isMap, key, keys, restore)
}

func (s *Shape) each(elements []Reply, key string, keys []string, restore Restore) error {
	for at, element := range elements {
		own := key
		if s.key == fromArgument {
			own = ""
			if at < len(keys) {
				own = keys[at]
			}
		}
		if err := s.inner.walk(element, own, keys, restore); err != nil {
			return err
		}
	}
	return nil
}

// pairs takes a map, an array that alternates, or, if its first element is an array, one of two-element arrays.
func (s *Shape) pairs(elements []Reply, isMap bool, key string, keys []string, restore Restore) error {
	if len(elements) > 0 && !isMap {
		if _, _, isNested := elements[0].Elements(); isNested {
			for _, element := range elements {
				pair, _, isArray := element.Elements()
				if !isArray || len(pair) != 2 {
					continue
				}
				if err := s.inner.walk(pair[1], s.named(pair[0], key), keys, restore); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for at := 0; at+1 < len(elements); at += 2 {
		if err := s.inner.walk(elements[at+1], s.named(elements[at], key), keys, restore); err != nil {
			return err
		}
	}
	return nil
}

// named is the key that values belong to where it stands in the reply.
func (s *Shape) named(first Reply, key string) string {
	if s.key == fromReply {
		if text, isText := first.Text(); isText {
			return text
		}
	}
	return key
}
