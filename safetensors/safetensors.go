// Package safetensors is the bytes of a safetensors file's header and of a checkpoint's shard index: it parses them
// and writes them. It reads no tensor data and opens no file, and it knows no code.
//
// A file is a u64 N, N bytes of JSON, and the data of the tensors. The JSON is an object of
//
//	"name": {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [begin, end]}
//
// with offsets counted from the end of the header, and "__metadata__", an object of strings, beside them. The tensors
// fill the data without holes or overlaps, in whatever order the JSON names them. docs/RATIONALE.md, section
// "safetensors", says where this reader is stricter or laxer than the reference implementation, and why.
package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/wcodec/wcodec/tensor"
)

// MaxHeader is the most bytes of JSON that a header or an index may have; it is the reference's limit for headers.
const MaxHeader = 100_000_000

// MaxRank is the most dimensions that a tensor may have.
const MaxRank = tensor.MaxRank

const lengthSize = 8 // the u64 before the JSON

// Errors of this package. Every one is ErrInvalid to errors.Is; messages name the tensor and the fact that did not hold.
var (
	ErrInvalid = errors.New("invalid safetensors")
	// ErrTruncated says that the file ends before its header or its last tensor does.
	ErrTruncated = fmt.Errorf("%w: file too short", ErrInvalid)
	// ErrTooLarge says that a header, an index or a tensor's rank is beyond its cap.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)
	// ErrTrailing says that bytes follow the last tensor. The error is a *TrailingError.
	ErrTrailing = fmt.Errorf("%w: trailing bytes", ErrInvalid)
)

// TrailingError is an ErrTrailing that says how many bytes follow the last tensor.
type TrailingError struct{ Bytes uint64 }

func (e *TrailingError) Error() string {
	return fmt.Sprintf("%d bytes after the last tensor: %v", e.Bytes, ErrTrailing)
}

// Unwrap returns ErrTrailing.
func (e *TrailingError) Unwrap() error { return ErrTrailing }

// Tensor is one entry of a header.
type Tensor struct {
	Name       string
	DType      tensor.DType // as spelt in the header; it need not be known
	Shape      []uint64     // at most MaxRank dimensions, the slowest first; empty for a scalar
	Begin, End uint64       // the bytes of the tensor, counted from the end of the header
}

// Size is the number of bytes of the tensor.
func (t *Tensor) Size() uint64 { return t.End - t.Begin }

// Header is a parsed header. It keeps the original bytes, so that a file can be given back as it was.
type Header struct {
	Raw     []byte   // the original bytes, the length included
	Tensors []Tensor // in the order of their data; empty ones at one offset in the order of the JSON

	metadata string // the JSON of "__metadata__", already checked; empty where there is none
}

// DataOffset is where the data of the tensors begins in the file: the length of Raw.
func (h *Header) DataOffset() uint64 { return uint64(len(h.Raw)) }

// DataSize is the number of bytes that the tensors fill.
func (h *Header) DataSize() uint64 {
	if len(h.Tensors) == 0 {
		return 0
	}
	return h.Tensors[len(h.Tensors)-1].End
}

// FileSize is the size of a file that ends with its last tensor.
func (h *Header) FileSize() uint64 { return h.DataOffset() + h.DataSize() }

// Metadata returns the strings under "__metadata__", of a key that is there twice the last. It is nil where there are
// none. It reads them anew at every call.
func (h *Header) Metadata() map[string]string {
	if h.metadata == "" {
		return nil
	}
	var m map[string]string
	s := scanner{text: h.metadata}
	err := s.object(func(key string) error {
		value, err := s.str()
		if err != nil {
			return err
		}
		if m == nil {
			m = make(map[string]string)
		}
		m[key] = value
		return nil
	})
	if err != nil {
		return nil // cannot be: Parse has read the same text
	}
	return m
}

// CheckSize compares the header with the size of its file. It fails with ErrTruncated or with a *TrailingError.
func (h *Header) CheckSize(fileSize int64) error {
	size, want := uint64(max(0, fileSize)), h.FileSize()
	switch {
	case size > want:
		return &TrailingError{Bytes: size - want}
	case size == want:
		return nil
	case size < h.DataOffset():
		return fmt.Errorf("header ends at byte %d of a file of %d: %w", h.DataOffset(), size, ErrTruncated)
	}
	for i := range h.Tensors {
		if t := &h.Tensors[i]; h.DataOffset()+t.End > size {
			return fmt.Errorf("%s ends at byte %d of a file of %d: %w", t.label(), h.DataOffset()+t.End, size, ErrTruncated)
		}
	}
	return nil
}

// label is the tensor's name as messages have it.
func (t *Tensor) label() string { return "tensor " + quote(t.Name) }

// quote cuts a name that is too long for a message.
func quote(name string) string {
	const most = 200
	if len(name) > most {
		return fmt.Sprintf("%q (%d bytes)", name[:most], len(name))
	}
	return fmt.Sprintf("%q", name)
}

// headerLen reads and checks the length at the start of a file of fileSize bytes, or of unknown size where that is
// negative.
func headerLen(length [lengthSize]byte, fileSize int64) (int, error) {
	n := binary.LittleEndian.Uint64(length[:])
	if n > MaxHeader {
		return 0, fmt.Errorf("header of %d bytes, the most is %d: %w", n, MaxHeader, ErrTooLarge)
	}
	if fileSize >= 0 && n > uint64(max(0, fileSize-lengthSize)) {
		return 0, fmt.Errorf("header of %d bytes in a file of %d: %w", n, fileSize, ErrTruncated)
	}
	return int(n), nil
}

// maxOffset keeps file offsets in an int64 whatever the header's length.
const maxOffset = math.MaxInt64 - lengthSize - MaxHeader
