package main

import (
	"database/sql"
	"database/sql/driver"
	"net/url"
	"strings"

	"modernc.org/sqlite"
)

// registerSQLite makes the driver that Gitea asks for by name out of one that
// needs no C compiler.
func registerSQLite() { sql.Register("sqlite3", translator{&sqlite.Driver{}}) }

// translator opens databases whose addresses are written for another driver.
type translator struct{ driver.Driver }

// Open implements driver.Driver.
func (t translator) Open(address string) (driver.Conn, error) {
	return t.Driver.Open(translate(address))
}

// translate turns the options of one driver into those of the other. The cache
// stays unshared: who shares it is told that a table is locked instead of
// waiting for it.
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
