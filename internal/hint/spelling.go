package hint

// Nearest finds the candidate that is most similar to Word.
type Nearest struct {
	Word     string
	best     string
	distance int
}

// Try compares Word with the names of a candidate.
func (n *Nearest) Try(candidate string, names []string) {
	for _, name := range names {
		if d := distance(n.Word, name); n.best == "" || d < n.distance {
			n.best, n.distance = candidate, d
		}
	}
}

// Best returns the most similar candidate, "" if none is similar enough.
func (n *Nearest) Best() string {
	if n.distance > 2 || n.distance*3 > len(n.Word) {
		return ""
	}
	return n.best
}

// distance returns the optimal string alignment distance between a and b: the
// number of letters to insert, delete, replace, or swap with the next letter.
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
