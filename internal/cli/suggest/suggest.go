// Package suggest finds the word that a misspelt one was meant to be.
package suggest

// Nearest keeps the best of what was tried.
type Nearest struct {
	Word     string
	best     string
	distance int
}

// Try compares the word with words that stand for what.
func (n *Nearest) Try(what string, words []string) {
	for _, word := range words {
		if d := distance(n.Word, word); n.best == "" || d < n.distance {
			n.best, n.distance = what, d
		}
	}
}

// Best is the best if it is near enough to be what was meant.
func (n *Nearest) Best() string {
	if n.distance > 2 || n.distance*3 > len(n.Word) {
		return ""
	}
	return n.best
}

// distance counts the letters to insert, delete, replace or swap with the next
// one to make b of a (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
