//go:build race

package envelope_test

// The race detector lets pools lose what they hold.
const raceDetector = true
