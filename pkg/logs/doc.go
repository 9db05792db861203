// Package logs reads the logs of the Flux controllers: all replicas of all controllers as one
// stream, sorted by time.
//
// [Of] selects the pods of controllers. [Read] merges the logs so far, [Follow] continues with new
// lines. A broken stream is reopened a little before the last line, and lines that were already
// read are recognized by time and text: no line is lost or repeated.
package logs
