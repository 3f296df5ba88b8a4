package codecs

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
)

// table prints rows under a title, columns aligned to the right.
type table struct{ writer *tabwriter.Writer }

func newTable(title string, columns ...string) table {
	fmt.Printf("\n%s\n\n", title)
	made := table{tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)}
	made.row(columns...)
	return made
}

func (t table) row(cells ...string) { fmt.Fprintln(t.writer, strings.Join(cells, "\t")+"\t") }

func (t table) print() error { return t.writer.Flush() }

// count writes 1,234,567.
func count(number int) string {
	digits := fmt.Sprint(number)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func nanoseconds(number float64) string {
	if number < 100 {
		return fmt.Sprintf("%.1f", number)
	}
	return count(int(number + 0.5))
}

func ratio(number float64) string { return fmt.Sprintf("%.2f", number) }
