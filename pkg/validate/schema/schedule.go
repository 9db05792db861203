package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// scheduleFields lists the fields of a cron schedule with their minimum and maximum.
var scheduleFields = [...]struct {
	name     string
	from, to int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day of the month", 1, 31}, {"month", 1, 12}, {"day of the week", 0, 6}}

// scheduleProblem returns why the API server rejects a CronJob schedule, or "". Names of months and days are not
// checked.
func scheduleProblem(schedule string) string {
	if strings.HasPrefix(schedule, "@") {
		if name := strings.Fields(schedule)[0]; name == "@every" || slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, schedule) {
			return ""
		}
		return "is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and @every"
	}
	if strings.Contains(schedule, "TZ=") {
		return "" // the API server reports that spec.timeZone is required instead
	}
	fields := strings.Fields(schedule)
	if len(fields) != len(scheduleFields) {
		return fmt.Sprintf("must have 5 fields, not %d", len(fields))
	}
	for i, text := range fields {
		for part := range strings.SplitSeq(text, ",") {
			span, _, _ := strings.Cut(part, "/")
			for number := range strings.SplitSeq(span, "-") {
				n, err := strconv.Atoi(number)
				if f := scheduleFields[i]; err == nil && (n < f.from || n > f.to) {
					return fmt.Sprintf("the %s %d is not between %d and %d", f.name, n, f.from, f.to)
				}
			}
		}
	}
	return ""
}
