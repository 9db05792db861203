package controllers

import "strings"

// ImageTag returns the tag of an image, or its digest if it has no tag.
func ImageTag(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}
