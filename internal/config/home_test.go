package config

import "testing"

func TestHome(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		system string
		env    map[string]string
		want   string
	}{
		{"linux", map[string]string{"HOME": "/home/me"}, "/home/me"},
		{"linux", map[string]string{"USERPROFILE": "/home/other"}, ""},
		{"windows", map[string]string{"USERPROFILE": `C:\Users\me`}, `C:\Users\me`},
		{"windows", map[string]string{"USERPROFILE": `C:\Users\me`, "HOME": `D:\me`}, `D:\me`},
		{"windows", nil, ""},
	} {
		if got := homeOn(test.system, func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("%s with %v: %q, want %q", test.system, test.env, got, test.want)
		}
	}
}
