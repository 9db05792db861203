// Package controllers is the catalogue: what Flux consists of, as data.
//
// Kinds has a row for each custom resource and All a row for each controller.
// A row holds everything that any verb needs to know about a kind, so that a
// verb is written once and works on every kind. The functions beside the rows
// are pure: they read one decoded object and know neither a cluster nor a
// command line.
package controllers
