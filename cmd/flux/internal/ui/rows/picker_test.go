package rows

import "testing"

func TestPicker(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cursor       int
		marks        []int
		older, newer int
		fails        bool
	}{
		"selected and previous": {0, nil, 1, 0, false},
		"last":                  {2, nil, 0, 0, true},
		"two marks":             {1, []int{2, 0}, 2, 0, false},
		"one mark":              {0, []int{1}, 0, 0, true},
		"three marks":           {0, []int{0, 1, 2}, 0, 0, true},
		"mark removed":          {1, []int{0, 0}, 2, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Picker{Items: []string{"c", "b", "a"}, Marks: map[int]bool{}}
			for _, mark := range test.marks {
				p.Cursor = mark
				p.Mark()
			}
			p.Cursor = 0
			p.Move(-1)
			p.Move(test.cursor)
			older, newer, err := p.Pair()
			if older != test.older || newer != test.newer || (err != nil) != test.fails {
				t.Errorf("the pair is %d and %d: %v", older, newer, err)
			}
		})
	}
}
