package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fluxkit/flux/pkg/controllers"
)

const sample = `{"kind":"List", "metadata":{"resourceVersion":"7","continue":"next"},
 "items":[
  {"metadata":{"name":"a","managedFields":[{"f":{"x":"\"}]"}}],"labels":{"k":"é\u00e9\ud83d\ude00\n"}},
   "spec":{"n":1,"big":12345678901,"f":1.5,"e":1e3,"neg":-4,"yes":true,"no":false,"nil":null,"list":[1,"a",[],{}]},
   "status":{"inventory":{"entries":[{"id":"x\\"},{"id":"}"}]},"ready":"True"}},
  {}
 ], "extra": [1,{"a":"]"}] }`

// TestStreamPrunes reads a list byte by byte and at once, with omitted fields.
func TestStreamPrunes(t *testing.T) {
	t.Parallel()
	want := []controllers.Object{
		{
			"apiVersion": "v1", "kind": "Thing",
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"k": "éé😀\n"}},
			"spec": map[string]any{
				"n": int64(1), "big": int64(12345678901), "f": 1.5, "e": 1000.0, "neg": int64(-4), "yes": true, "no": false, "nil": nil,
				"list": []any{int64(1), "a", []any{}, map[string]any{}},
			},
			"status": map[string]any{"ready": "True"},
		},
		{"apiVersion": "v1", "kind": "Thing"},
	}
	for name, from := range map[string]io.Reader{
		"whole": strings.NewReader(sample), "bytewise": iotest.OneByteReader(strings.NewReader(sample)), "halves": iotest.HalfReader(strings.NewReader(sample)),
	} {
		var got []controllers.Object
		r := Resource{Kind: "Thing"}
		r.Version = "v1"
		list, err := decodeList(from, new(int64), r, prune([]string{"metadata.managedFields", "status.inventory"}), func(o controllers.Object) error {
			got = append(got, o)
			return nil
		})
		if err != nil || list.ResourceVersion != "7" || list.Continue != "next" {
			t.Errorf("%s: %+v %v", name, list, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// TestStreamNoticesACutAnswer truncates a list at every byte: each must be an error.
func TestStreamNoticesACutAnswer(t *testing.T) {
	t.Parallel()
	for n := range len(sample) {
		_, err := decodeList(strings.NewReader(sample[:n]), new(int64), Resource{}, prune([]string{"spec"}), func(controllers.Object) error { return nil })
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestStreamRejectsOtherValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`<html>`, `[]`, `{"items":{}}`, `{"items":[1]}`, `{"items":[{"a" 1}]}`, `{"items":[{"a":1 "b":2}]}`, `{"items":[{"a":tru}]}`, `{"items":[{"a":01}]}`, `{"items":[{"a":"\x"}]}`, `{"kind":,"items":[]}`} {
		if _, err := decodeList(strings.NewReader(text), new(int64), Resource{}, nil, func(controllers.Object) error { return nil }); err == nil {
			t.Errorf("%s is accepted as a list", text)
		}
	}
	deep := `{"items":[{"a":` + strings.Repeat("[", 20000)
	if _, err := decodeList(strings.NewReader(deep), new(int64), Resource{}, nil, nil); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a deeply nested answer: %v", err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	for _, paths := range [][]string{{"a", "a.b", "c.d"}, {"a.b", "a", "c.d"}} {
		if got, want := prune(paths), (pruned{"a": nil, "c": {"d": nil}}); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %v", paths, got)
		}
	}
}

// FuzzStream compares the stream with encoding/json.
func FuzzStream(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("{\"a\":\"\xff\",\"a\":{\"b\":[1,-0,1e400,\"\\ud800\"]}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]any
		if err := json.Unmarshal(data, &want); err != nil || want == nil {
			return
		}
		got, err := newStream(iotest.HalfReader(bytes.NewReader(data))).object(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := newStream(bytes.NewReader(data)).skip(); err != nil {
			t.Errorf("skipping: %v", err)
		}
		whole, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var again map[string]any
		if err := json.Unmarshal(whole, &again); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("got %v, want %v", again, want)
		}
	})
}
