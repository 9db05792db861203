// Package controllers is the catalog of Flux: Kinds has a row for each custom resource, All has a
// row for each controller.
//
// A row holds all facts about a kind that commands need, so that a command is written once for all
// kinds. The functions are pure: they read decoded objects and access neither the cluster nor the
// command line.
package controllers
