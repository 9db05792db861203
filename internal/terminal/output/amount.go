package output

import "fmt"

// Amount returns a number with a noun in the singular or plural.
func Amount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
