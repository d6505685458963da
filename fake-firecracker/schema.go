package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// kind of a field's value.
type kind int

const (
	text kind = iota
	flag
	byteNumber
	number
	choice
	object
	objects
	texts
	anything
)

// field is one of a body. A value of null counts as not given, unless it is required.
type field struct {
	name     string
	kind     kind
	required bool
	choices  []string
	schema   *schema
	// since is the version that brought it; before that it is unknown.
	since [2]int
}

// schema is a body's. Names that it doesn't have are refused.
type schema struct {
	fields  []field
	lenient bool
}

func must(name string, k kind) field { return field{name: name, kind: k, required: true} }

func may(name string, k kind) field { return field{name: name, kind: k} }

func one(name string, choices ...string) field {
	return field{name: name, kind: choice, choices: choices}
}

func sub(name string, s *schema) field { return field{name: name, kind: object, schema: s} }

func (f field) needed() field { f.required = true; return f }

func (f field) from(major, minor int) field { f.since = [2]int{major, minor}; return f }

func of(all ...field) *schema { return &schema{fields: all} }

// fields are a body's values: string, bool, int64, fields, []fields, []string or what JSON gives.
type fields map[string]any

func (f fields) text(name, otherwise string) string {
	if v, ok := f[name].(string); ok {
		return v
	}
	return otherwise
}

func (f fields) flag(name string) bool { v, _ := f[name].(bool); return v }

func (f fields) number(name string, otherwise int64) int64 {
	if v, ok := f[name].(int64); ok {
		return v
	}
	return otherwise
}

func (f fields) sub(name string) fields { v, _ := f[name].(fields); return v }

func (f fields) has(name string) bool { return f[name] != nil }

// read takes a body as strictly as serde does with deny_unknown_fields: exact names, exact types, each once.
func (s *schema) read(body []byte, settings *settings) (fields, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	found, err := s.object(decoder, settings)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("trailing characters")
		}
	}
	if err != nil {
		upTo := body[:min(int(decoder.InputOffset()), len(body))]
		line := bytes.Count(upTo, []byte("\n")) + 1
		return nil, fmt.Errorf("%w at line %d column %d", err, line, len(upTo)-bytes.LastIndexByte(upTo, '\n')-1)
	}
	return found, nil
}

func (s *schema) object(decoder *json.Decoder, settings *settings) (fields, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, errors.New("expected value")
	}
	if token != json.Delim('{') {
		return nil, fmt.Errorf("invalid type: %s, expected struct", typeName(token))
	}
	found := fields{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, errors.New("key must be a string")
		}
		name, _ := token.(string)
		f, known := s.find(name, settings)
		if !known {
			if s.lenient {
				var ignored any
				if err := decoder.Decode(&ignored); err != nil {
					return nil, errors.New("expected value")
				}
				continue
			}
			return nil, fmt.Errorf("unknown field `%s`, expected one of %s", name, s.names(settings))
		}
		if _, twice := found[name]; twice {
			return nil, fmt.Errorf("duplicate field `%s`", name)
		}
		if found[name], err = f.value(decoder, settings); err != nil {
			return nil, err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("EOF while parsing an object")
	}
	for _, f := range s.fields {
		if f.required && found[f.name] == nil {
			return nil, fmt.Errorf("missing field `%s`", f.name)
		}
	}
	return found, nil
}

func (s *schema) find(name string, settings *settings) (field, bool) {
	for _, f := range s.fields {
		if f.name == name && (f.since == [2]int{} || settings.atLeast(f.since[0], f.since[1])) {
			return f, true
		}
	}
	return field{}, false
}

func (s *schema) names(settings *settings) string {
	var all []string
	for _, f := range s.fields {
		if _, known := s.find(f.name, settings); known {
			all = append(all, "`"+f.name+"`")
		}
	}
	return strings.Join(all, ", ")
}

func (f field) value(decoder *json.Decoder, settings *settings) (any, error) {
	if f.kind == anything {
		var v any
		if err := decoder.Decode(&v); err != nil {
			return nil, errors.New("expected value")
		}
		return v, nil
	}
	if f.kind == object {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, errors.New("expected value")
		}
		if string(raw) == "null" {
			return nil, nil
		}
		inner := json.NewDecoder(bytes.NewReader(raw))
		inner.UseNumber()
		v, err := f.schema.object(inner, settings)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
	if f.kind == objects {
		var list []json.RawMessage
		if err := decoder.Decode(&list); err != nil {
			return nil, errors.New("invalid type, expected a sequence")
		}
		all := []fields{}
		for _, raw := range list {
			inner := json.NewDecoder(bytes.NewReader(raw))
			inner.UseNumber()
			v, err := f.schema.object(inner, settings)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	}
	if f.kind == texts {
		var list []string
		if err := decoder.Decode(&list); err != nil {
			return nil, errors.New("invalid type, expected a sequence of strings")
		}
		return list, nil
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, errors.New("expected value")
	}
	if token == nil {
		return nil, nil
	}
	return f.scalar(token)
}

func (f field) scalar(token json.Token) (any, error) {
	switch v := token.(type) {
	case string:
		if f.kind == text {
			return v, nil
		}
		if f.kind == choice {
			if contains(f.choices, v) {
				return v, nil
			}
			return nil, fmt.Errorf("unknown variant `%s`, expected one of `%s`", v, strings.Join(f.choices, "`, `"))
		}
	case bool:
		if f.kind == flag {
			return v, nil
		}
	case json.Number:
		n, err := v.Int64()
		if err == nil && n >= 0 && (f.kind == number || f.kind == byteNumber && n <= math.MaxUint8) {
			return n, nil
		}
		if f.kind == number || f.kind == byteNumber {
			return nil, fmt.Errorf("invalid value: integer `%s`, expected %s", v, f.kind)
		}
	}
	return nil, fmt.Errorf("invalid type: %s, expected %s", typeName(token), f.kind)
}

func (k kind) String() string {
	return map[kind]string{text: "a string", flag: "a boolean", byteNumber: "u8", number: "usize",
		choice: "string", object: "struct"}[k]
}

func typeName(token json.Token) string {
	switch v := token.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("string %q", v)
	case bool:
		return fmt.Sprintf("boolean `%t`", v)
	case json.Number:
		return fmt.Sprintf("integer `%s`", v)
	case json.Delim:
		if v == '[' {
			return "sequence"
		}
		return "map"
	}
	return fmt.Sprint(token)
}
