// Command gitea is the released Gitea with three changes for tests: it uses the
// SQLite driver written in Go, so that no C compiler is needed; it can listen on
// inherited sockets; and it can exit when its standard input is closed, so that
// it does not outlive a test that was killed.
package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"code.gitea.io/gitea/cmd"
	"code.gitea.io/gitea/modules/log"
	_ "code.gitea.io/gitea/modules/markup/markdown" // renders the README.md of repositories
	"code.gitea.io/gitea/modules/setting"
)

// version is set by the linker; clients read it from the API.
var version = "development"

func main() {
	registerSQLite()
	setting.EnableSQLite3 = true
	setting.SupportedDatabaseTypes = append(setting.SupportedDatabaseTypes, "sqlite3")
	setting.AppVer = version
	if take("GITEA_ENDS_WITH_STDIN") != "" {
		go endWithInput()
	}
	if count := take("GITEA_SOCKETS"); count != "" {
		if err := useSockets(count); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	err := cmd.RunMainApp(cmd.NewMainApp(cmd.AppVersion{Version: version}), os.Args...)
	log.GetManager().Close() // flushes the queued messages
	if err != nil {
		os.Exit(1)
	}
}

// take returns an environment variable and unsets it, because the Git hooks also run this program.
func take(name string) string {
	value := os.Getenv(name)
	_ = os.Unsetenv(name) // fails only for an empty name
	return value
}

// endWithInput shuts down gracefully when standard input is closed.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGTERM)
	}
	if err != nil {
		os.Exit(1)
	}
}
