package commands

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"snugly.dev/go/internal/vectors"
)

// argument is text, or bytes by a rule.
type argument string

func (a *argument) UnmarshalJSON(content []byte) error {
	var text string
	if json.Unmarshal(content, &text) == nil {
		*a = argument(text)
		return nil
	}
	var bytes vectors.Bytes
	err := json.Unmarshal(content, &bytes)
	*a = argument(bytes)
	return err
}

type commandCase struct {
	Arguments []argument
	Fits      bool
	Keys      []int
	Values    [][2]int
	Compared  []int
	Refused   map[string]string
}

type replyCase struct {
	Arguments []argument
	Reply     json.RawMessage
	Values    [][2]*string
}

func readVectors(t *testing.T) (read struct {
	Commands []commandCase
	Replies  []replyCase
},
) {
	vectors.Read(t, "vectors/commands.json", &read)
	return read
}

func wordsOf(arguments []argument) words {
	var made words
	for _, each := range arguments {
		made = append(made, string(each))
	}
	return made
}

func TestKeysAndValuesAreWhereTheVectorsSay(t *testing.T) {
	table := New(all)
	for _, each := range readVectors(t).Commands {
		args := wordsOf(each.Arguments)
		var found Found
		fits := true
		if row := table.Row(args[0]); row != nil {
			found = Find(row, args)
			match := match[words]{pattern: row.arguments, args: args, at: 1, length: args.Len()}
			fits = match.items(row.arguments.items) && match.at == match.length
		}
		if fits != each.Fits {
			t.Errorf("%.100q fits: %v", args, fits)
		}
		var values [][2]int
		for _, value := range found.Values {
			values = append(values, [2]int{value.At, value.Key})
		}
		if !slices.Equal(found.Keys, each.Keys) || !slices.Equal(values, each.Values) || !slices.Equal(found.compared, each.Compared) {
			t.Errorf("%.100q: found %+v", args, found)
		}
	}
}

func TestRefusalsHaveTheWordsOfTheVectors(t *testing.T) {
	for _, valueType := range all {
		table := New([]string{valueType})
		for _, each := range readVectors(t).Commands {
			args, message := wordsOf(each.Arguments), ""
			if row := table.Row(args[0]); row != nil {
				message = Refusal(row, args, Find(row, args))
			}
			if message != each.Refused[valueType] {
				t.Errorf("%.100q with %s: %q", args, valueType, message)
			}
		}
	}
}

// replyOf is a reply as the vectors write it down.
func replyOf(t *testing.T, written json.RawMessage) *tree {
	var text string
	if json.Unmarshal(written, &text) == nil && string(written) != "null" {
		return &tree{value: text}
	}
	var elements []json.RawMessage
	if json.Unmarshal(written, &elements) == nil && elements != nil {
		return &tree{value: treesOf(t, elements)}
	}
	var other struct{ Map *[][]json.RawMessage }
	if json.Unmarshal(written, &other) == nil && other.Map != nil {
		return &tree{treesOf(t, slices.Concat(*other.Map...)), true}
	}
	return &tree{}
}

func treesOf(t *testing.T, written []json.RawMessage) []*tree {
	trees := []*tree{}
	for _, each := range written {
		trees = append(trees, replyOf(t, each))
	}
	return trees
}

func TestValuesInRepliesAreThoseOfTheVectors(t *testing.T) {
	table := New(all)
	for _, each := range readVectors(t).Replies {
		args := wordsOf(each.Arguments)
		wanted, got := "", ""
		for _, value := range each.Values {
			wanted += fmt.Sprintf("%s:%s ", textOf(value[1]), textOf(value[0]))
		}
		if row := table.Row(args[0]); row != nil {
			found := Find(row, args)
			var keys []string
			for _, at := range found.Keys {
				keys = append(keys, args[at])
			}
			if shape := row.Shape(found); shape != nil {
				err := shape.Walk(replyOf(t, each.Reply), keys, func(reply Reply, key string) error {
					text, _ := reply.Text()
					got += fmt.Sprintf("%s:%s ", key, text)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if got != wanted {
			t.Errorf("%q with %s: got %q, wanted %q", args, each.Reply, got, wanted)
		}
	}
}

// textOf is empty where a vector has no key.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
