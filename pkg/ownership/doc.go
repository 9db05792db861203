// Package ownership moves the ownership of fields in the objects of an inventory from the tools of users to the
// controller that applies the objects.
package ownership
