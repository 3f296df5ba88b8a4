//go:build unix

package comparison

import (
	"fmt"
	"slices"
)

func printHeading(ratios []Ratio) {
	fmt.Printf("%-3s %10s  %-8s %-11s %6s %12s %10s", "", "goroutines", "client", "compression", "stored", "operations/s", "CPU")
	for _, ratio := range ratios {
		fmt.Printf(" %10s", ratio.Title)
	}
	fmt.Println()
}

func printRows(ways []Way, results []result, ratios []Ratio, operation operation, goroutines int) {
	for at, way := range ways {
		result := results[at]
		fmt.Printf("%-3s %10d  %-8s %-11s %6.0f %12.0f %7.1f us", operation.name, goroutines, way.Library, way.Compression,
			result.stored, median(result.rates), median(result.costs))
		for _, ratio := range ratios {
			fmt.Printf(" %10s", ratio.cell(at, ways, results))
		}
		fmt.Println()
	}
}

// cell is the median of the ratios of the rounds.
func (r Ratio) cell(at int, ways []Way, results []result) string {
	other := slices.IndexFunc(ways, func(way Way) bool { return way.Name == r.Of(ways[at].Name) })
	if other < 0 || other == at {
		return ""
	}
	ratios := make([]float64, len(results[at].rates))
	for round := range ratios {
		ratios[round] = results[at].rates[round] / results[other].rates[round]
	}
	return fmt.Sprintf("%.3f", median(ratios))
}

func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[len(sorted)/2]
}
