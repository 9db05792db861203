package upstream

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestUserConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		system string
		env    map[string]string
		want   string
	}{
		{"linux", map[string]string{"HOME": "/home/ada"}, "/home/ada/.config"},
		{"linux", map[string]string{"HOME": "/home/ada", "XDG_CONFIG_HOME": "/config"}, "/config"},
		{"linux", map[string]string{"XDG_CONFIG_HOME": "/config"}, "/config"},
		{"linux", nil, ""},
		{"darwin", map[string]string{"HOME": "/Users/ada"}, "/Users/ada/Library/Application Support"},
		{"darwin", map[string]string{"HOME": "/Users/ada", "XDG_CONFIG_HOME": "/config"}, "/config"},
		{"windows", map[string]string{"AppData": `C:\Users\ada\AppData\Roaming`, "HOME": "/home/ada", "XDG_CONFIG_HOME": "/config"}, `C:\Users\ada\AppData\Roaming`},
		{"windows", map[string]string{"HOME": "/home/ada"}, ""},
	} {
		if got := filepath.ToSlash(userConfig(c.system, func(name string) string { return c.env[name] })); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.system, c.env, got, c.want)
		}
	}
}

// Without a home directory, no file of the current directory is read: that could be of a repository.
func TestOwnAgeKeysWithoutHome(t *testing.T) {
	t.Parallel()
	for _, env := range []map[string]string{nil, {"XDG_CONFIG_HOME": "testdata"}} {
		d := Decryption{Env: func(name string) string { return env[name] }}
		if keys, err := d.ownAgeKeys(); err != nil || slices.ContainsFunc(keys, func(key string) bool { return key != "" }) {
			t.Errorf("%v: %q, %v", env, keys, err)
		}
	}
}
