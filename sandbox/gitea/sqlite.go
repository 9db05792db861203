package main

import (
	"database/sql"
	"database/sql/driver"
	"net/url"
	"strings"

	"modernc.org/sqlite"
)

// registerSQLite registers the SQLite driver written in Go under the name that
// Gitea uses.
func registerSQLite() { sql.Register("sqlite3", translator{&sqlite.Driver{}}) }

// translator accepts the data source names of the C driver.
type translator struct{ driver.Driver }

// Open implements driver.Driver.
func (t translator) Open(address string) (driver.Conn, error) {
	return t.Driver.Open(translate(address))
}

// translate converts the options of a data source name from the C driver to the Go
// driver. The cache is not shared, because with a shared cache, queries on a locked table
// fail immediately instead of waiting.
func translate(address string) string {
	path, query, _ := strings.Cut(address, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return address
	}
	kept := url.Values{"_txlock": options["_txlock"]}
	for option, pragma := range map[string]string{"_busy_timeout": "busy_timeout", "_journal_mode": "journal_mode"} {
		if value := options.Get(option); value != "" {
			kept.Add("_pragma", pragma+"("+value+")")
		}
	}
	return path + "?" + kept.Encode()
}
