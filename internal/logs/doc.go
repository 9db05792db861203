// Package logs reads what the controllers print: all replicas of all of them
// as one stream in the order of time.
//
// [Controllers] tells the pods of controllers from others. [Read] merges what
// their containers have printed so far, [Follow] goes on with what they print
// from then on. A stream that breaks is opened anew a little before the last
// line that came, and what had come already is recognised by its time and its
// text: nothing is lost and nothing comes twice.
package logs
