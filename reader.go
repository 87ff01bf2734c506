package wcodec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/store"
)

// Reader is an open .wcodec file: its directory in memory, its data where it is. It is safe for concurrent use.
type Reader struct {
	file    store.File
	dir     *format.Directory
	members []*Member
	tensors []*Tensor
	byName  map[string]*Tensor
}

// Open opens the .wcodec file at path. It reads the directory alone.
func Open(path string) (*Reader, error) {
	f, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := newReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// NewReader opens the .wcodec file of the given size that src reads. Closing the Reader does not close src. An *os.File
// that is a regular file of that size is read as Open reads one.
func NewReader(src io.ReaderAt, size int64) (*Reader, error) {
	if f, ok := src.(*os.File); ok {
		if file, err := store.FromOSFile(f); err == nil && file.Size() == size {
			return newReader(file)
		}
	}
	name := "input"
	if n, ok := src.(interface{ Name() string }); ok {
		name = n.Name()
	}
	return newReader(store.FromReaderAt(name, src, size))
}

func newReader(f store.File) (*Reader, error) {
	dir, err := format.Open(f, f.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), classify(err))
	}
	r := &Reader{file: f, dir: dir}
	for i := range dir.Members {
		m := &Member{r: r, m: &dir.Members[i]}
		m.tensors = make([]*Tensor, len(m.m.Tensors))
		all := make([]Tensor, len(m.m.Tensors))
		for k := range m.m.Tensors {
			all[k] = Tensor{m: m, t: &m.m.Tensors[k]}
			m.tensors[k] = &all[k]
		}
		r.tensors = append(r.tensors, m.tensors...)
		if b := m.m.Blob; b != nil {
			m.bytes = &Tensor{m: m, t: b}
		} else if b := m.m.Trailing; b != nil {
			m.bytes = &Tensor{m: m, t: b}
		}
		r.members = append(r.members, m)
	}
	r.byName = make(map[string]*Tensor, len(r.tensors))
	for _, t := range r.tensors {
		if _, twice := r.byName[t.t.Name]; !twice {
			r.byName[t.t.Name] = t
		}
	}
	return r, nil
}

// classify joins the public sentinel to an error of the packages below.
func classify(err error) error {
	switch {
	case errors.Is(err, format.ErrUnsupported):
		return join(ErrUnsupported, err)
	case errors.Is(err, format.ErrCorrupt), errors.Is(err, format.ErrNotWcodec), errors.Is(err, safetensors.ErrInvalid):
		return join(ErrCorrupt, err)
	}
	return err
}

// join marks err as kind without changing what it says.
func join(kind, err error) error { return &marked{kind, err} }

type marked struct{ kind, err error }

func (m *marked) Error() string   { return m.err.Error() }
func (m *marked) Unwrap() []error { return []error{m.kind, m.err} }

// Close closes the file that Open opened.
func (r *Reader) Close() error { return r.file.Close() }

// Size is the size of the .wcodec file in bytes.
func (r *Reader) Size() int64 { return r.file.Size() }

// Version is the version of the format that the file has.
func (r *Reader) Version() (major, minor int) { return int(r.dir.Major), int(r.dir.Minor) }

// Members returns the files inside, in order.
func (r *Reader) Members() []*Member { return r.members }

// Tensors returns the tensors of all members in the order of their data.
func (r *Reader) Tensors() []*Tensor { return r.tensors }

// Tensor returns the tensor called name, of the first member that has one, or an error that wraps ErrNotFound.
func (r *Reader) Tensor(name string) (*Tensor, error) {
	if t := r.byName[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: tensor %q: %w", r.file.Name(), name, ErrNotFound)
}

// Member is one file inside a .wcodec file.
type Member struct {
	r       *Reader
	m       *format.Member
	tensors []*Tensor
	bytes   *Tensor // what is not a tensor: a blob's bytes, or those after the last tensor
}

// Kinds of members.
const (
	KindSafetensors = "safetensors"
	KindBlob        = "blob"
)

// Name is the member's base name.
func (m *Member) Name() string { return m.m.Name }

// Kind is KindSafetensors or KindBlob.
func (m *Member) Kind() string {
	if m.m.Kind == format.KindBlob {
		return KindBlob
	}
	return KindSafetensors
}

// Size is the original file's size in bytes.
func (m *Member) Size() int64 { return int64(m.m.Size) }

// StoredSize is what the member's header and data take in the .wcodec file, its share of the directory not counted.
func (m *Member) StoredSize() int64 {
	n := int64(0)
	if m.m.Kind == format.KindSafetensors {
		n = int64(m.m.Header.StoredLen)
	}
	for _, t := range m.all() {
		n += t.StoredSize()
	}
	return n
}

// Tensors returns the member's tensors in the order of their data.
func (m *Member) Tensors() []*Tensor { return m.tensors }

// all is every run of coded bytes: the tensors, and what is not one.
func (m *Member) all() []*Tensor {
	if m.bytes == nil {
		return m.tensors
	}
	return append(m.tensors[:len(m.tensors):len(m.tensors)], m.bytes)
}

// Header returns the original header of a safetensors member, byte for byte: its length in 8 bytes, then the JSON.
func (m *Member) Header() ([]byte, error) {
	if m.m.Kind != format.KindSafetensors {
		return nil, fmt.Errorf("%s: member %q has no safetensors header", m.r.file.Name(), m.m.Name)
	}
	h := m.m.Header
	v, err := m.r.file.Map(int64(h.Offset), int64(h.StoredLen))
	if err != nil {
		return nil, err
	}
	defer v.Close()
	var raw []byte
	err = store.Guard(func() (err error) {
		raw, err = h.Decode(v.Bytes())
		raw = bytes.Clone(raw) // it may be the view's own bytes
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: member %q: header: %w", m.r.file.Name(), m.m.Name, classify(err))
	}
	return raw, nil
}

// Metadata returns the __metadata__ of a safetensors member.
func (m *Member) Metadata() (map[string]string, error) {
	raw, err := m.Header()
	if err != nil {
		return nil, err
	}
	h, err := safetensors.Parse(raw, -1)
	if err != nil {
		return nil, fmt.Errorf("%s: member %q: %w", m.r.file.Name(), m.m.Name, classify(err))
	}
	return h.Metadata(), nil
}
