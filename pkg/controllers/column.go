package controllers

import (
	"regexp"
	"strings"
	"sync"
)

var suspended = Column{Header: "SUSPENDED", Value: func(k Kind, o Object) string {
	if k.Suspension.Is(o) {
		return "True"
	}
	return "False"
}}

// Cell returns the text of the column for an object.
func (c Column) Cell(k Kind, o Object) string {
	if c.Value != nil {
		return c.Value(k, o)
	}
	return Shorten(c.Field.String(o))
}

var digests = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(sha1|sha256|sha384|sha512|blake3):([0-9a-f]{8})[0-9a-f]+`)
})

// Shorten truncates every digest in a text to eight hexadecimal digits, as
// tables print revisions and messages.
func Shorten(s string) string { return digests().ReplaceAllString(s, "$1:$2") }

func revision(p Path) Column { return Column{Header: "REVISION", Field: p} }

func text(header, field string) Column { return Column{Header: header, Field: Path{field}} }

// generator returns spec.sourceRef as written, without a default namespace.
func generator(_ Kind, o Object) string {
	v, _ := Path{"spec.sourceRef"}.Lookup(o)
	ref, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	field := func(name string) string { return Path{name}.String(ref) }
	return field("kind") + "/" + field("namespace") + "/" + field("name")
}

var image = Column{
	Header: "IMAGE", Field: Path{"status.latestRef.name", "status.latestImage"},
	Value: func(_ Kind, o Object) string {
		if name := (Path{"status.latestRef.name"}).String(o); name != "" {
			return name
		}
		name, _ := splitImage(Path{"status.latestImage"}.String(o))
		return name
	},
}

var imageTag = Column{
	Header: "TAG", Field: Path{"status.latestRef.tag", "status.latestImage"},
	Value: func(_ Kind, o Object) string {
		if tag := (Path{"status.latestRef.tag"}).String(o); tag != "" {
			return tag
		}
		_, tag := splitImage(Path{"status.latestImage"}.String(o))
		return tag
	},
}

// splitImage splits an image into name and tag. A colon before the last slash
// precedes a port.
func splitImage(image string) (name, tag string) {
	i := strings.LastIndex(image, ":")
	if i < strings.LastIndex(image, "/") || i < 0 {
		return image, ""
	}
	return image[:i], image[i+1:]
}
