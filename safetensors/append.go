package safetensors

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Place gives every tensor the bytes after those of the one before it, keeping its size.
func Place(tensors []Tensor) {
	var end uint64
	for i := range tensors {
		t := &tensors[i]
		t.Begin, t.End = end, end+t.Size()
		end = t.End
	}
}

// AppendHeader appends the header of a file of the given tensors to dst, its length and padding to 8 bytes included,
// with the bytes that the reference implementation writes for the same order. Metadata that is nil is left out; its
// keys are sorted. The tensors must be what Parse accepts and lie in order, as Place arranges them; the error is ErrInvalid where
// they do not.
func AppendHeader(dst []byte, tensors []Tensor, metadata map[string]string) ([]byte, error) {
	if err := checkNames(tensors); err != nil {
		return dst, err
	}
	if err := checkLayout(tensors); err != nil {
		return dst, err
	}
	start := len(dst)
	b := append(dst, make([]byte, lengthSize)...)
	b = append(b, '{')
	if metadata != nil {
		b = appendString(b, metadataKey)
		b = append(b, ":{"...)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return dst, fmt.Errorf("metadata %s is not UTF-8: %w", quote(key), ErrInvalid)
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, key)
			b = append(b, ':')
			b = appendString(b, metadata[key])
		}
		b = append(b, '}')
	}
	for i := range tensors {
		t := &tensors[i]
		if err := t.checkWritable(); err != nil {
			return dst, fmt.Errorf("%s: %w", t.label(), err)
		}
		if i > 0 || metadata != nil {
			b = append(b, ',')
		}
		b = appendTensor(b, t)
	}
	b = append(b, '}')
	for (len(b)-start)%lengthSize != 0 {
		b = append(b, ' ')
	}
	n := len(b) - start - lengthSize
	if n > MaxHeader {
		return dst, fmt.Errorf("header of %d bytes, the most is %d: %w", n, MaxHeader, ErrTooLarge)
	}
	binary.LittleEndian.PutUint64(b[start:], uint64(n))
	return b, nil
}

// checkWritable tests what JSON cannot carry, and what Parse would refuse.
func (t *Tensor) checkWritable() error {
	switch {
	case t.Name == metadataKey:
		return fmt.Errorf("the name is reserved: %w", ErrInvalid)
	case !utf8.ValidString(t.Name) || !utf8.ValidString(string(t.DType)):
		return fmt.Errorf("name or dtype is not UTF-8: %w", ErrInvalid)
	case len(t.Shape) > MaxRank:
		return fmt.Errorf("%d dimensions, the most is %d: %w", len(t.Shape), MaxRank, ErrTooLarge)
	}
	return t.check()
}

func appendTensor(b []byte, t *Tensor) []byte {
	b = appendString(b, t.Name)
	b = append(b, `:{"dtype":`...)
	b = appendString(b, string(t.DType))
	b = append(b, `,"shape":[`...)
	for i, n := range t.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, n, 10)
	}
	b = append(b, `],"data_offsets":[`...)
	b = strconv.AppendUint(b, t.Begin, 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, t.End, 10)
	return append(b, "]}"...)
}

// appendString appends s as JSON, escaping what must be escaped and no more.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ':
			b = append(b, c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\r':
			b = append(b, `\r`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		}
	}
	return append(b, '"')
}
