package commands

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snugly.dev/go/internal/vectors"
)

func TestTheTableIsThatOfTheSpecification(t *testing.T) {
	specified, err := os.ReadFile(vectors.Path("commands.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(specified, document) {
		t.Error("commands.json is not that of the specification: copy spec/commands.json here")
	}
}

type words []string

func (w words) Len() int           { return len(w) }
func (w words) Text(at int) string { return w[at] }

// all are the types of values.
var all = []string{"strings", "hashes", "lists", "streams"}

func command(text string) words { return strings.Fields(text) }

func TestKeysAndValuesAreFound(t *testing.T) {
	table := New(all)
	for _, each := range []struct {
		command string
		keys    []int
		values  []Value
	}{
		{"SET k v", []int{1}, []Value{{2, 1}}},
		{"set k v ex 10 nx", []int{1}, []Value{{2, 1}}},
		{"SET k v GET KEEPTTL", []int{1}, []Value{{2, 1}}},
		{"SET k v EX", nil, nil},
		{"SET k", nil, nil},
		{"SETEX k 10 v", []int{1}, []Value{{3, 1}}},
		{"MSET a 1 b 2", []int{1, 3}, []Value{{2, 1}, {4, 3}}},
		{"MSET a 1 b", nil, nil},
		{"MSETEX 2 a 1 b 2 EX 10", []int{2, 4}, []Value{{3, 2}, {5, 4}}},
		{"MSETEX 2 a 1 b", nil, nil},
		{"MSETEX x a 1", nil, nil},
		{"MGET a b c", []int{1, 2, 3}, nil},
		{"GET k", []int{1}, nil},
		{"HSET k f v g w", []int{1}, []Value{{3, 1}, {5, 1}}},
		{"HSETEX k FNX EX 10 FIELDS 2 f v g w", []int{1}, []Value{{8, 1}, {10, 1}}},
		{"LINSERT k BEFORE pivot v", []int{1}, []Value{{4, 1}}},
		{"XADD k NOMKSTREAM MAXLEN ~ 1000 * f v g w", []int{1}, []Value{{8, 1}, {10, 1}}},
		{"XADD k 5-* f v", []int{1}, []Value{{4, 1}}},
		{"XADD k 5-x f v", nil, nil},
		{"XADD k * f", nil, nil},
		{"LMPOP 2 a b LEFT", []int{2, 3}, nil},
	} {
		arguments := command(each.command)
		found := Find(table.Row(arguments[0]), arguments)
		if !reflect.DeepEqual(found.Keys, each.keys) || !reflect.DeepEqual(found.Values, each.values) {
			t.Errorf("%s: found %+v", each.command, found)
		}
	}
}

func TestWhatIsRememberedIsWhatTheWholePatternFinds(t *testing.T) {
	table := New(all)
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SampledFrom(rowsOf(table)).Draw(t, "row")
		arguments := words{row.Name}
		pool := []string{"k", "v", "1", "2", "*", "=", "~", "5-1"}
		for _, each := range row.arguments.options {
			pool = append(pool, each.name, strings.ToLower(each.name))
		}
		arguments = append(arguments, rapid.SliceOfN(rapid.SampledFrom(pool), 0, 22).Draw(t, "arguments")...)
		for range 2 {
			if got, wanted := Find(row, arguments), find(row.arguments, row.arguments.items, arguments); !reflect.DeepEqual(got, wanted) {
				t.Fatalf("found %+v, wanted %+v", got, wanted)
			}
		}
	})
}

func rowsOf(table *Table) []*Row {
	var rows []*Row
	for _, name := range []string{
		"SET", "SETEX", "MSET", "MSETEX", "GETEX", "MGET", "HSETEX", "HSCAN", "HRANDFIELD", "HMGET",
		"LINSERT", "LMPOP", "BLMPOP", "BLPOP", "LMOVE", "SORT", "SORT_RO", "XADD", "XREAD", "XAUTOCLAIM",
	} {
		rows = append(rows, table.Row(name))
	}
	return rows
}

func TestCommandsThatWorkOnCompressedBytesAreRefused(t *testing.T) {
	everything, strings := New(all), New([]string{"strings"})
	for _, each := range []struct {
		table   *Table
		command string
		says    string
	}{
		{strings, "append k v", "APPEND is refused because compression is on: the server would read or change a part of the compressed bytes"},
		{strings, "STRLEN k", "STRLEN is refused because compression is on: the server would measure or count the compressed bytes, not the value"},
		{strings, "SET k v IFEQ w", "SET is refused because compression is on: the server would compare compressed bytes, and equal values need not compress to equal bytes"},
		{strings, "SET k v EX 10", ""},
		{strings, "INCR k", ""},
		{strings, "HSTRLEN k f", ""},
		{strings, "SORT k BY w", ""},
		{strings, "SORT k GET w", "SORT is refused because compression is on: the server would sort by compressed bytes, or copy them into a reply or list that nothing decodes"},
		{everything, "SORT k BY w", "SORT is refused because compression is on: the server would sort by compressed bytes, or copy them into a reply or list that nothing decodes"},
		{everything, "LINSERT k BEFORE short v", ""},
		{everything, "LINSERT k BEFORE 12345678901234567890123456789012 v", "LINSERT is refused because compression is on: the server would compare compressed bytes, and equal values need not compress to equal bytes"},
		{strings, "LINSERT k BEFORE 12345678901234567890123456789012 v", ""},
		{strings, "FT.SEARCH i q", ""},
	} {
		arguments, message := command(each.command), ""
		if row := each.table.Row(arguments[0]); row != nil {
			message = Refusal(row, arguments, Find(row, arguments))
		}
		if message != each.says {
			t.Errorf("%s: got %q, wanted %q", each.command, message, each.says)
		}
	}
}

// tree is a reply: a string, a list of trees, or a map as a list that alternates.
type tree struct {
	value any
	isMap bool
}

func (r *tree) Text() (string, bool) {
	text, isText := r.value.(string)
	return text, isText
}

func (r *tree) Elements() ([]Reply, bool, bool) {
	list, isList := r.value.([]*tree)
	elements := []Reply{}
	for _, each := range list {
		elements = append(elements, each)
	}
	return elements, isList && r.isMap, isList
}

func grown(from any) *tree {
	switch from := from.(type) {
	case []any:
		list := []*tree{}
		for _, each := range from {
			list = append(list, grown(each))
		}
		return &tree{value: list}
	case map[string]any:
		list := []*tree{}
		for key, value := range from {
			list = append(list, grown(key), grown(value))
		}
		return &tree{list, true}
	}
	return &tree{value: from}
}

func TestValuesAreFoundInReplies(t *testing.T) {
	table := New(all)
	type list = []any
	for _, each := range []struct {
		command string
		reply   any
		found   string
	}{
		{"GET k", "v", "k:v"},
		{"GET k", nil, ""},
		{"GET k", list{"v"}, ""},
		{"SET k v", "OK", ""},
		{"SET k v GET", "old", "k:old"},
		{"MGET a b", list{"v", nil}, "a:v"},
		{"MGET a b", list{"v", "w", "more"}, "a:v b:w :more"},
		{"LPOP k", "v", "k:v"},
		{"LPOP k 2", list{"v", "w"}, "k:v k:w"},
		{"HGETALL k", list{"f", "v", "g", "w"}, "k:v k:w"},
		{"HGETALL k", map[string]any{"f": "v"}, "k:v"},
		{"HRANDFIELD k 2 WITHVALUES", list{list{"f", "v"}, list{"g", "w"}}, "k:v k:w"},
		{"HRANDFIELD k 2", list{"f", "g"}, ""},
		{"HSCAN k 0", list{"0", list{"f", "v"}}, "k:v"},
		{"HSCAN k 0 NOVALUES", list{"0", list{"f", "g"}}, ""},
		{"BLPOP a b 0", list{"b", "v"}, "b:v"},
		{"LMPOP 2 a b LEFT", list{"b", list{"v", "w"}}, "b:v b:w"},
		{"XRANGE k - +", list{list{"1-0", list{"f", "v"}}, list{"2-0", nil}}, "k:v"},
		{"XREAD STREAMS a 0", list{list{"a", list{list{"1-0", list{"f", "v"}}}}}, "a:v"},
		{"XREAD STREAMS a 0", map[string]any{"a": list{list{"1-0", list{"f", "v"}}}}, "a:v"},
		{"XAUTOCLAIM k g c 0 0", list{"0-0", list{list{"1-0", list{"f", "v"}}}, list{}}, "k:v"},
		{"XCLAIM k g c 0 1-0 JUSTID", list{"1-0"}, ""},
	} {
		arguments := command(each.command)
		row := table.Row(arguments[0])
		found := Find(row, arguments)
		var keys, values []string
		for _, at := range found.Keys {
			keys = append(keys, arguments[at])
		}
		if shape := row.Shape(found); shape != nil {
			err := shape.Walk(grown(each.reply), keys, func(reply Reply, key string) error {
				text, _ := reply.Text()
				values = append(values, key+":"+text)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(values, " "); got != each.found {
			t.Errorf("%s: found %q in %v, wanted %q", each.command, got, each.reply, each.found)
		}
	}
}

func TestLookingUpACommandAllocatesNothing(t *testing.T) {
	table := New([]string{"strings"})
	arguments := command("set key value ex 10")
	allocations := testing.AllocsPerRun(100, func() {
		row := table.Row(arguments[0])
		if found := Find(row, arguments); Refusal(row, arguments, found) != "" || row.Shape(found) != nil {
			t.Fatal("it is a plain SET")
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func BenchmarkFind(b *testing.B) {
	table := New([]string{"strings"})
	for _, text := range []string{"get key", "set key value", "set key value ex 10", "zadd key 1 a"} {
		arguments := command(text)
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if row := table.Row(arguments[0]); row != nil {
					Refusal(row, arguments, Find(row, arguments))
				}
			}
		})
	}
}
