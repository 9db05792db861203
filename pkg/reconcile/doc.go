// Package reconcile waits for Flux objects until they are ready, suspended or
// deleted. It prints nothing; callers receive the progress in callbacks.
package reconcile
