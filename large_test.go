package wcodec

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/tensor"
)

// holes writes a file and leaves runs of zeros out.
type holes struct {
	f  *os.File
	at int64
}

func (h *holes) Write(p []byte) (int, error) {
	zero := len(p) >= 4096
	for i := 0; zero && i < len(p); i += 512 {
		zero = p[i] == 0 // only the zero buffer of the test is as long as this
	}
	if !zero {
		if _, err := h.f.WriteAt(p, h.at); err != nil {
			return 0, err
		}
	}
	h.at += int64(len(p))
	return len(p), nil
}

// TestOpenLargeFile opens a sparse file with the directory of a 70-billion-parameter checkpoint: 140 GB of weights in
// one file, 723 tensors. The bounds are those promised to users.
func TestOpenLargeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.wcodec")
	size := writeSparse(t, path)
	if size < 130<<30 {
		t.Fatalf("the file has %d bytes only", size)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	r, err := Open(path)
	took := time.Since(begin)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	defer r.Close()
	t.Logf("%d GB, %d tensors: opened in %v, %d KiB allocated", size>>30, len(r.Tensors()), took, (after.TotalAlloc-before.TotalAlloc)>>10)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("opening allocated %d bytes", n)
	}
	if took > 50*time.Millisecond && !raceEnabled {
		t.Errorf("opening took %v", took)
	}
}

func writeSparse(t *testing.T, path string) int64 {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := &holes{f: f}
	w, err := format.NewWriter(out)
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	add := func(name string, shape ...uint64) {
		n, _ := tensor.ByteLen(tensor.BF16, shape)
		list = append(list, safetensors.Tensor{Name: name, DType: tensor.BF16, Shape: shape, End: n})
	}
	add("model.embed_tokens.weight", 128256, 8192)
	for i := range 80 {
		p := "model.layers." + string(rune('0'+i/10)) + string(rune('0'+i%10))
		add(p+".input_layernorm.weight", 8192)
		add(p+".mlp.down_proj.weight", 8192, 28672)
		add(p+".mlp.gate_proj.weight", 28672, 8192)
		add(p+".mlp.up_proj.weight", 28672, 8192)
		add(p+".post_attention_layernorm.weight", 8192)
		add(p+".self_attn.k_proj.weight", 1024, 8192)
		add(p+".self_attn.o_proj.weight", 8192, 8192)
		add(p+".self_attn.q_proj.weight", 8192, 8192)
		add(p+".self_attn.v_proj.weight", 1024, 8192)
	}
	add("model.norm.weight", 8192)
	add("lm_head.weight", 128256, 8192)
	safetensors.Place(list)
	raw, err := safetensors.AppendHeader(nil, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := format.Member{Name: "model.safetensors", Kind: format.KindSafetensors, Size: uint64(len(raw)) + list[len(list)-1].End}
	if m.Header, err = w.MemberHeader(raw); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 64<<10)
	for _, x := range list {
		g := tensor.Of(x.DType, x.Shape, x.Size())
		ft := format.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Begin: x.Begin, Length: x.Size(), Geometry: g}
		for s := range g.Segments() {
			var entries []format.IndexEntry
			var data [][]byte
			for _, c := range g.AppendChunks(nil, s) {
				n := c.Elems() * g.UnitSize
				entries = append(entries, format.IndexEntry{Length: uint32(n), Raw: true})
				data = append(data, zeros[:n])
			}
			seg, err := w.Segment(x.Size(), 0, nil, entries, data)
			if err != nil {
				t.Fatal(err)
			}
			ft.Segments = append(ft.Segments, seg)
		}
		m.Tensors = append(m.Tensors, ft)
	}
	if err := w.Finish([]format.Member{m}); err != nil {
		t.Fatal(err)
	}
	return w.Offset()
}
