package tensor

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestChunksCoverEachUnitOnce walks geometries of random shapes and checks that segments and chunks partition the
// units, that gather and scatter are inverse, and that every size stays within the limits.
func TestChunksCoverEachUnitOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := rapid.SampledFrom([]DType{BF16, F32, U8, F64, C64, F4, "NEW"}).Draw(t, "dtype")
		rows := rapid.Uint64Range(0, 700).Draw(t, "rows")
		cols := rapid.Uint64Range(0, 700).Draw(t, "cols")
		shape := []uint64{rows, cols}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			shape = []uint64{rows * cols}
		case 1:
			shape = []uint64{2, rows, cols}
		}
		n, err := Elements(shape)
		if err != nil {
			t.Fatal(err)
		}
		size := n * uint64(max(dtype.Bits(), 8)) / 8
		g := Of(dtype, shape, size)
		// Small segments, so that shapes of a test have several.
		if g.TileRows > 0 {
			g.SegElems = g.Cols * uint64(g.TileRows) * rapid.Uint64Range(1, 2).Draw(t, "bands")
		} else {
			g.SegElems = 3 * uint64(g.ChunkElems)
		}
		checkPartition(t, g, size)
	})
}

func checkPartition(t *rapid.T, g Geometry, size uint64) {
	if err := g.Validate(); err != nil {
		t.Fatalf("%+v: %v", g, err)
	}
	if g.Elems()*uint64(g.UnitSize) != size {
		t.Fatalf("%+v holds %d units, want %d bytes", g, g.Elems(), size)
	}
	src := make([]byte, size)
	r := rand.New(rand.NewPCG(1, size))
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	got := make([]byte, size)
	seen := make([]bool, g.Elems())
	buf := make([]byte, MaxChunkBytes)
	at := uint64(0)
	for s := range g.Segments() {
		first, elems := g.SegmentRange(s)
		if first != at || elems == 0 {
			t.Fatalf("segment %d starts at %d, want %d", s, first, at)
		}
		at += elems
		lo, hi := first*uint64(g.UnitSize), (first+elems)*uint64(g.UnitSize)
		chunks := g.AppendChunks(nil, s)
		if len(chunks) != g.Chunks(s) {
			t.Fatalf("%d chunks, Chunks says %d", len(chunks), g.Chunks(s))
		}
		for _, c := range chunks {
			if c.Elems() == 0 || c.Elems() > int(g.ChunkElems) {
				t.Fatalf("chunk of %d units in %+v", c.Elems(), g)
			}
			for r := range uint64(c.H) {
				for w := range uint64(c.W) {
					u := first + c.First + r*c.Stride + w
					if seen[u] {
						t.Fatalf("unit %d twice", u)
					}
					seen[u] = true
				}
			}
			c.Scatter(got[lo:hi], c.Gather(buf, src[lo:hi], g.UnitSize), g.UnitSize)
		}
	}
	if at != g.Elems() || !bytes.Equal(src, got) {
		t.Fatalf("%d of %d units covered", at, g.Elems())
	}
}

func TestGeometryOfKnownShapes(t *testing.T) {
	for _, c := range []struct {
		name     string
		d        DType
		shape    []uint64
		tileRows uint32
		chunk    uint32
		segments int
	}{
		{"llama embedding", BF16, []uint64{128256, 4096}, 256, 32768, 32},
		{"llama q", BF16, []uint64{4096, 4096}, 256, 32768, 1},
		{"llama k", BF16, []uint64{1024, 4096}, 256, 16384, 1},
		{"norm", BF16, []uint64{4096}, 0, 16384, 1},
		{"expert stack", BF16, []uint64{128, 768, 2048}, 256, 32768, 12},
		{"convolution", F32, []uint64{64, 3, 7, 7}, 0, 16384, 1},
		{"wide", BF16, []uint64{16, 1 << 20}, 16, 32768, 1},
		{"wider than a segment", BF16, []uint64{2, 20 << 20}, 0, 32768, 3},
		{"row vector", BF16, []uint64{1, 100000}, 0, 16384, 1},
		{"fp8", F8E4M3, []uint64{7168, 2048}, 256, 32768, 1},
		{"empty", BF16, []uint64{0, 4096}, 0, 16384, 0},
		{"scalar", F32, nil, 0, 16384, 1},
	} {
		n, _ := Elements(c.shape)
		g := Of(c.d, c.shape, n*uint64(c.d.Bits())/8)
		if err := g.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if g.TileRows != c.tileRows || g.ChunkElems != c.chunk || g.Segments() != c.segments {
			t.Errorf("%s: %+v, %d segments", c.name, g, g.Segments())
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	good := Of(BF16, []uint64{512, 512}, 512*512*2)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, breakIt := range map[string]func(*Geometry){
		"unit size":     func(g *Geometry) { g.UnitSize = 3 },
		"overflow":      func(g *Geometry) { g.Rows, g.Cols = 1<<40, 1<<40 },
		"no chunk":      func(g *Geometry) { g.ChunkElems = 0 },
		"large chunk":   func(g *Geometry) { g.ChunkElems = MaxChunkBytes },
		"no segment":    func(g *Geometry) { g.SegElems = 0 },
		"large segment": func(g *Geometry) { g.SegElems = MaxSegmentElems + 1 },
		"ragged bands":  func(g *Geometry) { g.SegElems++ },
		"tall tile":     func(g *Geometry) { g.TileRows = 512 },
		"one row":       func(g *Geometry) { g.Rows = 1 },
		"linear rows":   func(g *Geometry) { g.TileRows = 0 },
	} {
		g := good
		breakIt(&g)
		if g.Validate() == nil {
			t.Errorf("%s: accepted %+v", name, g)
		}
	}
}

func TestByteLen(t *testing.T) {
	for _, c := range []struct {
		d     DType
		shape []uint64
		want  uint64
		ok    bool
	}{
		{F4, []uint64{1, 3}, 0, false},
		{F4, []uint64{2, 3}, 3, true},
		{F6E2M3, []uint64{4}, 3, true},
		{C64, []uint64{2}, 16, true},
		{BF16, []uint64{2, 1<<64 - 2}, 0, false},
		{U8, []uint64{2, 1<<63 - 1}, 0, false},
		{BF16, []uint64{1 << 62, 0, 1 << 62}, 0, true},
		{F64, nil, 8, true},
	} {
		got, err := ByteLen(c.d, c.shape)
		if (err == nil) != c.ok || got != c.want {
			t.Errorf("%s %v: %d, %v", c.d, c.shape, got, err)
		}
	}
}
