// Package globs matches keys with patterns as KEYS and SCAN do. It knows bytes only.
package globs

import "slices"

// MatchesAny tells whether a key matches one of some patterns.
func MatchesAny(patterns []string, key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return Matches(pattern, key) })
}

// Matches tells whether a key matches a pattern of KEYS and SCAN, as Valkey reads them: *, ?, [a-c], [^a], \x. On a
// mismatch only the last * is reconsidered, since whatever an earlier one could match, the last one can as well; so it
// takes time proportional to the product of the two lengths at worst.
func Matches(pattern, key string) bool {
	if key == "" {
		// Only the pattern that stands for all keys matches the empty one, as in Valkey: ** does not.
		return pattern == "" || pattern == "*"
	}
	at, afterStar, matched := 0, -1, 0
	for next := 0; next < len(key); {
		if at < len(pattern) && pattern[at] == '*' {
			at++
			afterStar, matched = at, next
			continue
		}
		if length := matchesOne(pattern[at:], key[next]); length > 0 {
			at += length
			next++
			continue
		}
		if afterStar < 0 {
			return false
		}
		matched++
		at, next = afterStar, matched
	}
	for ; at < len(pattern); at++ {
		if pattern[at] != '*' {
			return false
		}
	}
	return true
}

// matchesOne matches a byte against the first element of a pattern, and returns how long that is; 0 if it does not match.
func matchesOne(pattern string, letter byte) int {
	switch {
	case pattern == "":
		return 0
	case pattern[0] == '?':
		return 1
	case pattern[0] == '[':
		isMatch, length := matchesSet(pattern[1:], letter)
		if isMatch {
			return 1 + length
		}
		return 0
	case pattern[0] == '\\' && len(pattern) > 1:
		if pattern[1] == letter {
			return 2
		}
		return 0
	case pattern[0] == letter:
		return 1
	}
	return 0
}

// matchesSet matches a byte against a set, given from behind its bracket, and says how long that is. A set that is not
// closed ends with the pattern.
func matchesSet(set string, letter byte) (isMatch bool, length int) {
	at := 0
	isNegated := set != "" && set[0] == '^'
	if isNegated {
		at++
	}
	for at < len(set) && set[at] != ']' {
		switch {
		case set[at] == '\\' && at+1 < len(set):
			isMatch = isMatch || set[at+1] == letter
			at += 2
		case at+2 < len(set) && set[at+1] == '-':
			low, high := min(set[at], set[at+2]), max(set[at], set[at+2])
			isMatch = isMatch || low <= letter && letter <= high
			at += 3
		default:
			isMatch = isMatch || set[at] == letter
			at++
		}
	}
	return isMatch != isNegated, min(at+1, len(set))
}
