package synth

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/store"
	"github.com/wcodec/wcodec/tensor"
)

// Tune says how a fine-tune differs from its base.
type Tune struct {
	Seed    uint64
	Sigma   float64 // standard deviation of the update of each weight
	Workers int     // 0: one for each core

	// Progress, if not nil, is called from one goroutine at a time with the bytes written so far and in all.
	Progress func(done, total int64)
}

// FineTune writes to out what training would make of base, a safetensors file or a checkpoint directory: headers stay as
// they are, byte for byte, and every finite float that is not zero moves by a Gaussian update, rounded to its own type. Quantised
// tensors move by the update divided by their scale, and scales, masks and rotary frequencies stay. Of a directory,
// files that are not safetensors are copied. Existing files are replaced.
func FineTune(ctx context.Context, base, out string, o Tune) error {
	st, err := os.Stat(base)
	if err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	if !st.IsDir() {
		return (&tuner{Tune: o}).run(ctx, []string{base}, []string{out})
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	var from, to, copies []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular() && e.Type() != fs.ModeSymlink:
		case strings.HasSuffix(name, ".safetensors"):
			from = append(from, filepath.Join(base, name))
			to = append(to, filepath.Join(out, name))
		default:
			copies = append(copies, name)
		}
	}
	if err := (&tuner{Tune: o}).run(ctx, from, to); err != nil {
		return err
	}
	for _, name := range copies {
		if err := copyFile(filepath.Join(out, name), filepath.Join(base, name)); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
	}
	return nil
}

// tuner is one fine-tune.
type tuner struct {
	Tune
	files  []baseFile
	scales map[string]place // of quantised tensors, by the names of the scales
}

// baseFile is an open file of the base.
type baseFile struct {
	f *os.File
	h *safetensors.Header
}

// place is where a tensor of the base is.
type place struct {
	file int
	t    *safetensors.Tensor
}

func (u *tuner) run(ctx context.Context, from, to []string) error {
	defer func() {
		for _, b := range u.files {
			b.f.Close()
		}
	}()
	p := progress{report: u.Progress}
	u.scales = make(map[string]place)
	for i, path := range from {
		b, err := openBase(path)
		if err != nil {
			return fmt.Errorf("synth: %w", err)
		}
		u.files = append(u.files, b)
		p.total += int64(b.h.FileSize())
		for j := range b.h.Tensors {
			if t := &b.h.Tensors[j]; isScale(t.Name) {
				u.scales[t.Name] = place{i, t}
			}
		}
	}
	for i := range u.files {
		h := u.files[i].h
		fill := func(dst []byte, at uint64) error { return u.fill(dst, i, at) }
		if err := writeFile(ctx, to[i], h.Raw, cutsOf(h.Tensors), u.Workers, &p, fill); err != nil {
			return err
		}
	}
	return nil
}

// openBase opens a file of the base and parses its header.
func openBase(path string) (b baseFile, err error) {
	if b.f, err = os.Open(path); err != nil {
		return b, err
	}
	defer func() {
		if err != nil {
			b.f.Close()
		}
	}()
	st, err := b.f.Stat()
	if err != nil {
		return b, err
	}
	if _, b.h, err = safetensors.ReadHeader(b.f, st.Size()); err == nil {
		err = b.h.CheckSize(st.Size())
	}
	if err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// cutsOf cuts the data of tensors into blocks at the ends of tensors, and inside of large ones at whole elements.
func cutsOf(tensors []safetensors.Tensor) []uint64 {
	cuts := []uint64{0}
	for i := range tensors {
		t := &tensors[i]
		if t.End-cuts[len(cuts)-1] > blockSize && t.Begin > cuts[len(cuts)-1] {
			cuts = append(cuts, t.Begin)
		}
		for t.End-cuts[len(cuts)-1] > blockSize {
			cuts = append(cuts, cuts[len(cuts)-1]+blockSize)
		}
	}
	if n := len(tensors); n > 0 && tensors[n-1].End > cuts[len(cuts)-1] {
		cuts = append(cuts, tensors[n-1].End)
	}
	return cuts
}

// fill makes the bytes of a block, cut by cutsOf.
func (u *tuner) fill(dst []byte, file int, at uint64) error {
	b := &u.files[file]
	if _, err := b.f.ReadAt(dst, int64(b.h.DataOffset()+at)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	end := at + uint64(len(dst))
	list := b.h.Tensors
	for i := sort.Search(len(list), func(i int) bool { return list[i].End > at }); i < len(list) && list[i].Begin < end; i++ {
		t := &list[i]
		from, to := max(at, t.Begin), min(end, t.End)
		if err := u.update(dst[from-at:to-at], t, from-t.Begin); err != nil {
			return err
		}
	}
	return nil
}

// isScale reports whether a tensor holds the scales of a quantised one.
func isScale(name string) bool {
	return strings.HasSuffix(name, "_scale") || strings.HasSuffix(name, "_scale_inv")
}

// fixed reports whether training leaves a tensor alone.
func fixed(name string) bool {
	for _, suffix := range []string{".inv_freq", ".attn.bias", ".attention.bias", ".masked_bias"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return isScale(name)
}

// update moves the elements of t that are in b, which begin at byte offset of t.
func (u *tuner) update(b []byte, t *safetensors.Tensor, offset uint64) error {
	steps, err := u.stepsOf(t)
	if err != nil {
		return err
	}
	size := t.DType.Bits() / 8
	switch _, float := t.DType.Float(); {
	case fixed(t.Name), t.DType == tensor.I8 && steps == nil, t.DType != tensor.I8 && !float:
		return nil
	case t.DType == tensor.F8E4M3FNUZ, t.DType == tensor.F8E5M2FNUZ:
		return nil
	}
	s := NewGenerator(u.Seed).key("update of " + t.Name)
	var moves, numbers [scratch]float32
	var moved [scratch * 8]byte
	for first := offset / uint64(size); len(b) > 0; {
		n := min(scratch, len(b)/size)
		normalTable().run(moves[:n], s, first, float64(u.Sigma)*unit)
		steps.divide(moves[:n], first)
		if t.DType == tensor.F64 {
			moveF64(moved[:n*size], b, moves[:n])
		} else {
			decode(numbers[:n], b, t.DType)
			for i := range n {
				moves[i] += numbers[i]
				if t.DType == tensor.I8 {
					moves[i] = max(-maxI8, min(maxI8, moves[i]))
				}
			}
			encode(moved[:n*size], moves[:n], t.DType)
			for i, x := range numbers[:n] {
				if x == 0 || x-x != 0 { // zero, infinite or NaN
					copy(moved[i*size:(i+1)*size], b[i*size:])
				}
			}
		}
		b, first = b[copy(b, moved[:n*size]):], first+uint64(n)
	}
	return nil
}

// moveF64 is the update of F64 elements.
func moveF64(dst, b []byte, moves []float32) {
	for i, m := range moves {
		x := math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		if x != 0 && x-x == 0 {
			x += float64(m)
		}
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(x))
	}
}

// steps are the scales of a quantised tensor: one for each rows x cols block of it.
type steps struct {
	scale      []float32
	rows, cols uint64 // of a block
	across     uint64 // columns of the tensor
}

// stepsOf reads the scales of t, or returns nil where it has none in F32 that fit.
func (u *tuner) stepsOf(t *safetensors.Tensor) (*steps, error) {
	if t.DType != tensor.F8E4M3 && t.DType != tensor.I8 || len(t.Shape) != 2 {
		return nil, nil
	}
	p, ok := u.scales[t.Name+"_scale_inv"]
	if !ok {
		p, ok = u.scales[t.Name+"_scale"]
	}
	if !ok || p.t.DType != tensor.F32 || len(p.t.Shape) != 2 || p.t.Size() > 64<<20 {
		return nil, nil
	}
	s := &steps{rows: 1, cols: t.Shape[1], across: t.Shape[1]}
	blocks := func(n uint64) uint64 { return (n + blockSide - 1) / blockSide }
	switch r, c := t.Shape[0], t.Shape[1]; {
	case p.t.Shape[0] == r && p.t.Shape[1] == 1:
	case p.t.Shape[0] == blocks(r) && p.t.Shape[1] == blocks(c):
		s.rows, s.cols = blockSide, blockSide
	default:
		return nil, nil
	}
	b := make([]byte, p.t.Size())
	f := &u.files[p.file]
	if _, err := f.f.ReadAt(b, int64(f.h.DataOffset()+p.t.Begin)); err != nil {
		return nil, err
	}
	s.scale = make([]float32, len(b)/4)
	decode(s.scale, b, tensor.F32)
	return s, nil
}

// divide divides updates, the first of which is of element first, by the scales of their blocks.
func (s *steps) divide(v []float32, first uint64) {
	if s == nil {
		return
	}
	across := (s.across + s.cols - 1) / s.cols
	for i := range v {
		r, c := (first+uint64(i))/s.across, (first+uint64(i))%s.across
		v[i] = float32(v[i] / s.scale[r/s.rows*across+c/s.cols])
	}
}

// copyFile copies a file, whole or not at all.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := store.Create(to, true)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Commit()
}
