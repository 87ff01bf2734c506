package wcodec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/store"
)

// input is one source of plain bytes, taken from the front: a mapped file where it can be, a stream otherwise.
type input struct {
	name string
	size int64 // -1: unknown
	file store.File
	os   *os.File    // what file maps
	was  os.FileInfo // of os, before anything was read
	off  int64
	r    *bufio.Reader
	pool *bufferPool
}

func newInput(s Source, pool *bufferPool) (*input, error) {
	in := &input{name: s.Name, size: s.Size, pool: pool}
	if f, ok := s.Reader.(*os.File); ok {
		file, err := store.FromOSFile(f)
		if err == nil {
			in.file, in.size, in.os = file, file.Size(), f
			in.was, err = f.Stat()
			return in, err
		}
		if !errors.Is(err, store.ErrNotRegular) {
			return nil, err
		}
	}
	in.r = bufio.NewReaderSize(s.Reader, 64<<10)
	return in, nil
}

// unchanged says whether the file is still the one that was opened. One that shrank by less than a page reads as zeros
// there, and one that was written to meanwhile is neither what it was nor what it is.
func (in *input) unchanged() error {
	if in.os == nil {
		return nil
	}
	is, err := in.os.Stat()
	if err != nil {
		return err
	}
	if is.Size() != in.size || !is.ModTime().Equal(in.was.ModTime()) {
		return fmt.Errorf("%s: changed while it was read", in.name)
	}
	return nil
}

// errShort says that an input ended before the bytes asked for, with some of them there. It is not io.ErrUnexpectedEOF,
// by which readers of truncated downloads and archives say that they failed.
var errShort = errors.New("input ends early")

// smallRead is up to where reading costs less than mapping and unmapping.
const smallRead = 64 << 10

// take returns the next n bytes. They are valid until release is called. An input that ends early gives what there was
// and errShort, or io.EOF where there was nothing.
func (in *input) take(n int) (b []byte, release func(), err error) {
	if in.file != nil {
		left := in.file.Size() - in.off
		if left == 0 && n > 0 {
			return nil, nil, io.EOF
		}
		if int64(n) > left {
			n, err = int(left), errShort
		}
		if n <= smallRead && err == nil {
			buf := in.pool.get(n)
			if k, err := in.file.ReadAt(buf, in.off); k < n {
				in.pool.put(buf)
				return nil, nil, err
			}
			in.off += int64(n)
			return buf, func() { in.pool.put(buf) }, nil
		}
		v, mapErr := in.file.Map(in.off, int64(n))
		if mapErr != nil {
			return nil, nil, mapErr
		}
		v.Populate()
		in.off += int64(n)
		return v.Bytes(), func() { v.Close() }, err
	}
	buf := in.pool.get(n)
	k := 0
	for k < n && err == nil {
		var got int
		got, err = in.r.Read(buf[k:])
		k += got
	}
	switch {
	case k == n && (err == nil || err == io.EOF):
		err = nil // the end comes again
	case k > 0 && err == io.EOF:
		err = errShort
	default:
		in.pool.put(buf)
		return nil, nil, err
	}
	return buf[:k], func() { in.pool.put(buf) }, err
}

// reader returns the rest as a stream; what is read through it is taken.
func (in *input) reader() io.Reader {
	if in.file == nil {
		return in.r
	}
	return readerFunc(func(p []byte) (int, error) {
		if in.off >= in.file.Size() {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), in.file.Size()-in.off)]
		n, err := in.file.ReadAt(p, in.off)
		in.off += int64(n)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// peek returns up to n bytes without taking them, fewer only at the end of the input.
func (in *input) peek(n int) ([]byte, error) {
	var b []byte
	var err error
	if in.file == nil {
		b, err = in.r.Peek(n)
	} else {
		b = make([]byte, min(int64(n), in.file.Size()-in.off))
		n, err = in.file.ReadAt(b, in.off)
		b = b[:n]
	}
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return b, nil
}

// unread gives bytes back to the front.
func (in *input) unread(b []byte) {
	if in.file != nil {
		in.off -= int64(len(b))
		return
	}
	in.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(b), in.r), 64<<10)
}

// header reads the safetensors header, where the input has one. A file called .safetensors must; of anything else
// the first bytes decide, and what then does not parse is a blob.
func (in *input) header(o Options) (*safetensors.Header, error) {
	if o.Blob {
		return nil, nil
	}
	named := strings.EqualFold(filepath.Ext(in.name), ".safetensors")
	if !named {
		b, err := in.peek(24)
		if err != nil || !looksLikeSafetensors(b) {
			return nil, err
		}
	}
	raw, h, err := safetensors.ReadHeader(in.reader(), in.size)
	if errors.Is(err, safetensors.ErrTrailing) {
		if !o.KeepTrailing && !named {
			in.unread(raw)
			return nil, nil
		}
		if !o.KeepTrailing {
			return nil, fmt.Errorf("%s: %w; keep them with --keep-trailing", in.name, join(ErrTrailing, join(ErrCorrupt, err)))
		}
		err = nil
	}
	switch {
	case err == nil:
		return h, nil
	case !named && errors.Is(err, safetensors.ErrInvalid):
		in.unread(raw)
		return nil, nil
	case errors.Is(err, safetensors.ErrInvalid):
		return nil, fmt.Errorf("%s: %w", in.name, join(ErrCorrupt, err))
	}
	return nil, fmt.Errorf("%s: %w", in.name, err)
}

func looksLikeSafetensors(b []byte) bool {
	if len(b) < 10 || b[4]|b[5]|b[6]|b[7] != 0 {
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(b[8:], " \t\r\n"), []byte("{"))
}

// bufferPool recycles large buffers within one operation. It is no sync.Pool, which the garbage collector empties: with
// segments of 128 MiB, what it threw away and what took its place was several times what was in use.
type bufferPool struct {
	mu   sync.Mutex
	free [][]byte
}

func (p *bufferPool) get(n int) []byte {
	p.mu.Lock()
	var b []byte
	if last := len(p.free) - 1; last >= 0 {
		b, p.free[last] = p.free[last], nil
		p.free = p.free[:last]
	}
	p.mu.Unlock()
	if cap(b) >= n+codec.Slack {
		return b[:n]
	}
	// Too small: dropped, so that the pool tends to the sizes in use.
	return make([]byte, n, n+codec.Slack)
}

func (p *bufferPool) put(b []byte) {
	p.mu.Lock()
	p.free = append(p.free, b)
	p.mu.Unlock()
}
