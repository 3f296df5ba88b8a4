//go:build !race

package envelope_test

const raceDetector = false
