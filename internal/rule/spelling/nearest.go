// Package spelling finds the valid name that is nearest to a misspelled one.
package spelling

import "strings"

// Nearest returns the word that differs from s by the fewest typing errors, if they are
// at most most, or "". It is for error messages about unknown names.
//
// A typing error is a missing, added or wrong letter, or two neighbours swapped (the
// Damerau-Levenshtein distance). Upper case counts as lower case. A word that shares
// hardly a letter with s is not returned: the errors must be fewer than its length less
// one, unless s begins with it. Among equally near words, the first is returned.
func Nearest(s string, words []string, most int) string {
	s = strings.ToLower(s)
	best, errors := "", most+1
	for _, w := range words {
		if d := distance(s, w, errors); d < errors && (d < len(w)-1 || strings.HasPrefix(s, w)) {
			best, errors = w, d
		}
	}
	return best
}

// distance returns the Damerau-Levenshtein distance of a and b without edits between
// swapped letters ("optimal string alignment"), or enough if their lengths alone
// differ by that much.
func distance(a, b string, enough int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= enough {
		return enough
	}
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
