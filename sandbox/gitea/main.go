// Gitea for tests is Gitea as released, apart from this: its SQLite is the one
// written in Go, so that no C compiler is needed; it can be given the sockets to
// listen on; and it can be told to end with its standard input, so that it does
// not outlive a test that was killed.
package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"code.gitea.io/gitea/cmd"
	"code.gitea.io/gitea/modules/log"
	_ "code.gitea.io/gitea/modules/markup/markdown" // its repositories render README.md
	"code.gitea.io/gitea/modules/setting"
)

// version is set when building: clients ask for it.
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
	log.GetManager().Close() // what is queued would be lost
	if err != nil {
		os.Exit(1)
	}
}

// take reads a variable that is not for Git's hooks, which run this program too.
func take(name string) string {
	value := os.Getenv(name)
	_ = os.Unsetenv(name) // fails for no name that is written here
	return value
}

// endWithInput asks the process to end in good order once nobody holds the
// other side of its standard input.
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
