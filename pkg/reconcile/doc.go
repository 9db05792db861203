// Package reconcile waits for objects of Flux: until they are ready, suspended
// or deleted. It prints nothing; progress goes to functions of the caller.
package reconcile
