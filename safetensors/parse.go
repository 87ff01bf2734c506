package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wcodec/wcodec/tensor"
)

// metadataKey is the one key of a header that is not a tensor.
const metadataKey = "__metadata__"

// Parse reads the header at the start of b, which may go on beyond it. It keeps that part of b as Header.Raw. A
// fileSize that is not negative is checked as by CheckSize; with the *TrailingError alone comes a valid Header, for
// callers that can keep such bytes.
func Parse(b []byte, fileSize int64) (*Header, error) {
	if len(b) < lengthSize {
		return nil, fmt.Errorf("%d bytes where the header's length takes %d: %w", len(b), lengthSize, ErrTruncated)
	}
	n, err := headerLen([lengthSize]byte(b), fileSize)
	if err != nil {
		return nil, err
	}
	if n > len(b)-lengthSize {
		return nil, fmt.Errorf("header of %d bytes, of which %d are there: %w", n, len(b)-lengthSize, ErrTruncated)
	}
	return parse(b[:lengthSize+n:lengthSize+n], fileSize)
}

// ReadHeader reads a header from r, and from r no byte beyond it. It returns the bytes it consumed with an error too, so
// that what is not safetensors can still be passed on. fileSize is as in Parse. A length that lies costs no more memory
// than r has bytes.
func ReadHeader(r io.Reader, fileSize int64) (raw []byte, h *Header, err error) {
	raw, err = readUpTo(r, nil, lengthSize)
	if err != nil {
		return raw, nil, err
	}
	n, err := headerLen([lengthSize]byte(raw), fileSize)
	if err != nil {
		return raw, nil, err
	}
	raw, err = readUpTo(r, raw, lengthSize+n)
	if err != nil {
		return raw, nil, err
	}
	h, err = parse(raw[:len(raw):len(raw)], fileSize)
	return raw, h, err
}

// readUpTo fills b up to n bytes from r, growing it as bytes come.
func readUpTo(r io.Reader, b []byte, n int) ([]byte, error) {
	for len(b) < n {
		b = slices.Grow(b, min(n-len(b), max(64<<10, len(b))))
		got, err := io.ReadFull(r, b[len(b):min(n, cap(b))])
		b = b[:len(b)+got]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return b, fmt.Errorf("header ends at byte %d of a file of %d: %w", n, len(b), ErrTruncated)
		}
		if err != nil {
			return b, fmt.Errorf("read header: %w", err)
		}
	}
	return b, nil
}

// parser reads the JSON of a header.
type parser struct {
	scanner
	tensors  []Tensor
	dims     []uint64 // where the shapes of coming tensors go
	metadata string
}

func parse(raw []byte, fileSize int64) (*Header, error) {
	// One string of everything, of which names are parts.
	p := parser{scanner: scanner{text: string(raw[lengthSize:])}}
	if !utf8.ValidString(p.text) {
		return nil, fmt.Errorf("header is not UTF-8: %w", ErrInvalid)
	}
	// The shortest entry there can be is known, so the count below is no way to make us allocate.
	const shortest = len(`"":{"dtype":"","shape":[],"data_offsets":[0,0]}`)
	p.tensors = make([]Tensor, 0, min(strings.Count(p.text, "{"), len(p.text)/shortest))
	if err := p.header(); err != nil {
		return nil, err
	}
	if err := checkNames(p.tensors); err != nil {
		return nil, err
	}
	sortByData(p.tensors)
	if err := checkLayout(p.tensors); err != nil {
		return nil, err
	}
	h := &Header{Raw: raw, Tensors: p.tensors, metadata: p.metadata}
	if fileSize >= 0 {
		if err := h.CheckSize(fileSize); errors.Is(err, ErrTrailing) {
			return h, err
		} else if err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (p *parser) header() error {
	sawMetadata := false
	err := p.object(func(key string) error {
		if key != metadataKey {
			return p.entry(key)
		}
		if sawMetadata {
			return p.fail(metadataKey + " is there twice")
		}
		sawMetadata = true
		return p.readMetadata()
	})
	if err != nil {
		return err
	}
	return p.end()
}

func (p *parser) readMetadata() error {
	if p.null() {
		return nil
	}
	p.peek()
	start := p.pos
	err := p.object(func(key string) error {
		if p.peek() != '"' {
			return p.fail(metadataKey + " has a value that is not a string")
		}
		_, err := p.str()
		return err
	})
	p.metadata = p.text[start:p.pos]
	return err
}

// entry reads the description of one tensor.
func (p *parser) entry(name string) error {
	t := Tensor{Name: name}
	var dtype, shape, offsets bool
	once := func(seen *bool, key string) error {
		if *seen {
			return fmt.Errorf("%q is there twice: %w", key, ErrInvalid)
		}
		*seen = true
		return nil
	}
	err := p.object(func(key string) (err error) {
		switch key {
		case "dtype":
			if err = once(&dtype, key); err == nil {
				var s string
				s, err = p.str()
				t.DType = tensor.DType(s)
			}
		case "shape":
			if err = once(&shape, key); err == nil {
				t.Shape, err = p.shape()
			}
		case "data_offsets":
			if err = once(&offsets, key); err == nil {
				t.Begin, t.End, err = p.offsets()
			}
		default:
			err = p.skip()
		}
		return err
	})
	switch {
	case err != nil:
	case !dtype:
		err = fmt.Errorf("no \"dtype\": %w", ErrInvalid)
	case !shape:
		err = fmt.Errorf("no \"shape\": %w", ErrInvalid)
	case !offsets:
		err = fmt.Errorf("no \"data_offsets\": %w", ErrInvalid)
	default:
		err = t.check()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.label(), err)
	}
	p.tensors = append(p.tensors, t)
	return nil
}

// shape reads a shape. Shapes share large blocks of memory.
func (p *parser) shape() ([]uint64, error) {
	const block = 8 << 10
	if cap(p.dims)-len(p.dims) < MaxRank {
		p.dims = make([]uint64, 0, min(block, max(MaxRank, len(p.text)/2)))
	}
	first := len(p.dims)
	err := p.array(func() error {
		if len(p.dims)-first == MaxRank {
			return fmt.Errorf("more than %d dimensions: %w", MaxRank, ErrTooLarge)
		}
		n, err := p.uint()
		p.dims = append(p.dims, n)
		return err
	})
	return p.dims[first:len(p.dims):len(p.dims)], err
}

func (p *parser) offsets() (begin, end uint64, err error) {
	var pair [2]uint64
	n := 0
	err = p.array(func() (err error) {
		if n == len(pair) {
			return p.fail("data_offsets has more than two numbers")
		}
		pair[n], err = p.uint()
		n++
		return err
	})
	if err == nil && n != len(pair) {
		err = p.fail("data_offsets has fewer than two numbers")
	}
	return pair[0], pair[1], err
}

// check tests what can be said of a tensor alone. Of an element type that is not known the bytes stand for themselves.
func (t *Tensor) check() error {
	if t.End < t.Begin {
		return fmt.Errorf("data ends at %d before it begins at %d: %w", t.End, t.Begin, ErrInvalid)
	}
	if t.End > maxOffset {
		return fmt.Errorf("data ends at %d, beyond any file: %w", t.End, ErrInvalid)
	}
	if !t.DType.Known() {
		if _, err := tensor.Elements(t.Shape); err != nil {
			return fmt.Errorf("%w: %w", err, ErrInvalid)
		}
		return nil
	}
	size, err := tensor.ByteLen(t.DType, t.Shape)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	if size != t.Size() {
		return fmt.Errorf("%s of shape %v takes %d bytes, its data is %d: %w", t.DType, t.Shape, size, t.Size(), ErrInvalid)
	}
	return nil
}

// checkNames finds a name that is there twice. The table of hashes takes 8 to 16 bytes a tensor, less than a map.
func checkNames(tensors []Tensor) error {
	size := 1
	for size < 2*len(tensors) {
		size *= 2
	}
	table := make([]uint32, size) // index into tensors plus one; 0 is free
	seed := maphash.MakeSeed()
	for i := range tensors {
		name := tensors[i].Name
		at := maphash.String(seed, name)
		for ; ; at++ {
			slot := &table[at&uint64(size-1)]
			if *slot == 0 {
				*slot = uint32(i + 1)
				break
			}
			if tensors[*slot-1].Name == name {
				return fmt.Errorf("%s is there twice: %w", tensors[i].label(), ErrInvalid)
			}
		}
	}
	return nil
}

// sortByData brings tensors into the order of their data, those at one place in the order they had.
func sortByData(tensors []Tensor) {
	before := func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	}
	sorted := true
	for i := 1; i < len(tensors) && sorted; i++ {
		sorted = before(&tensors[i-1], &tensors[i]) <= 0
	}
	if sorted {
		return
	}
	order := make([]uint32, len(tensors))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(before(&tensors[a], &tensors[b]), cmp.Compare(a, b))
	})
	// Apply the permutation cycle by cycle; done places point to themselves.
	for i := range order {
		if int(order[i]) == i {
			continue
		}
		first := tensors[i]
		at := i
		for {
			from := int(order[at])
			order[at] = uint32(at)
			if from == i {
				tensors[at] = first
				break
			}
			tensors[at] = tensors[from]
			at = from
		}
	}
}

// checkLayout tests that tensors, in order, fill the data from its start without holes or overlaps.
func checkLayout(tensors []Tensor) error {
	var end uint64
	for i := range tensors {
		t := &tensors[i]
		switch {
		case t.Begin < end:
			return fmt.Errorf("%s begins at %d, inside %s, which ends at %d: %w", t.label(), t.Begin, tensors[i-1].label(), end, ErrInvalid)
		case t.Begin > end:
			return fmt.Errorf("%s begins at %d and leaves a hole from %d: %w", t.label(), t.Begin, end, ErrInvalid)
		}
		end = t.End
	}
	return nil
}
