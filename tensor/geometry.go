package tensor

import (
	"errors"
	"fmt"
	"math/bits"
)

// Limits of the geometry (FORMAT section "Geometry"). A reader refuses what lies outside.
const (
	TileSide        = 256      // columns of a tile; also the rows of a full one
	TileElems       = 65536    // elements of a linear tile
	MaxSegmentElems = 16 << 20 // most elements of a segment that holds more than one tile row
	MaxSegmentBytes = 32 << 20 // most bytes of such a segment; what a one-pass writer holds
	MaxChunkElems   = 32768    // most elements of a chunk of a tensor
	MaxChunkBytes   = 512 << 10
	BlobChunkBytes  = 512 << 10 // chunk of a blob, whose codes are byte codes
	MaxRank         = 64
)

// ErrGeometry reports a geometry outside the limits of the format.
var ErrGeometry = errors.New("geometry out of range")

// Geometry says how a tensor's units are cut into segments, tiles and chunks.
//
// A unit is what a code sees as one element: an element of the tensor, or a byte where the element size is unknown or
// not whole bytes, or half of a complex number. Rows x Cols units lie row-major. A segment is a contiguous run of
// units. Where TileRows is 0 the geometry is linear: chunks are runs of ChunkElems consecutive units. Otherwise a
// segment is a run of bands of TileRows whole rows, a band is cut into tiles of 256 columns, and a tile into chunks
// that are runs of whole tile rows. The last of each may be short.
type Geometry struct {
	Unit       DType  // what a code is told that a unit is
	UnitSize   int    // bytes: 1, 2, 4 or 8
	Rows, Cols uint64 // linear: Rows is 1
	TileRows   uint32 // 0: linear
	ChunkElems uint32 // units of a full chunk
	SegElems   uint64 // units of a full segment
}

// Chunk is one unit of decoding: H rows of W units each. First is the index of its first unit in its segment; the rows
// are Stride units apart. A linear chunk has one row.
type Chunk struct {
	First  uint64
	Stride uint64
	H, W   uint32
}

// Elems is the number of units in the chunk.
func (c Chunk) Elems() int { return int(c.H) * int(c.W) }

// Contiguous reports whether the chunk is one run of its segment.
func (c Chunk) Contiguous() bool { return c.H == 1 || uint64(c.W) == c.Stride }

// Elements multiplies a shape out, from the left. It fails where a product does not fit 64 bits or the last one 63, as
// the safetensors reference does: [2^63, 0] has no elements, [2^63, 2, 0] overflows.
func Elements(shape []uint64) (uint64, error) {
	n := uint64(1)
	for _, d := range shape {
		hi, lo := bits.Mul64(n, d)
		if hi != 0 {
			return 0, fmt.Errorf("shape %v overflows: %w", shape, ErrGeometry)
		}
		n = lo
	}
	if n > 1<<63-1 {
		return 0, fmt.Errorf("shape %v overflows: %w", shape, ErrGeometry)
	}
	return n, nil
}

// ByteLen is the size in bytes of a tensor of a known type. It fails on overflow and where the bits do not fill whole
// bytes.
func ByteLen(d DType, shape []uint64) (uint64, error) {
	n, err := Elements(shape)
	if err != nil {
		return 0, err
	}
	hi, lo := bits.Mul64(n, uint64(d.Bits()))
	if hi != 0 || lo > 1<<63-1 {
		return 0, fmt.Errorf("shape %v of %s overflows: %w", shape, d, ErrGeometry)
	}
	if lo%8 != 0 {
		return 0, fmt.Errorf("shape %v of %s is not a whole number of bytes: %w", shape, d, ErrGeometry)
	}
	return lo / 8, nil
}

// Of returns the geometry that a writer uses for a tensor: a function of type, shape and size alone, so that equal
// tensors give equal bytes. byteLen is the tensor's size; for a known type it equals ByteLen.
func Of(d DType, shape []uint64, byteLen uint64) Geometry {
	unit, size, scale := unitOf(d)
	n := byteLen / uint64(size)
	g := Geometry{Unit: unit, UnitSize: size, Rows: 1, Cols: n}
	if size > 1 || d.Known() && d.Bits() == 8 {
		if last := len(shape) - 1; last >= 1 && shape[last] > 0 && n > 0 {
			if cols := shape[last] * uint64(scale); cols > TileSide && n/cols > 1 {
				g.Rows, g.Cols = n/cols, cols
			}
		}
	}
	g.ChunkElems = chunkElems(n, size)
	g.setTiles()
	return g
}

// OfBlob returns the geometry of a file that is not a tensor: bytes in large chunks.
func OfBlob(byteLen uint64) Geometry {
	return Geometry{Unit: U8, UnitSize: 1, Rows: 1, Cols: byteLen, ChunkElems: BlobChunkBytes, SegElems: MaxSegmentElems}
}

func unitOf(d DType) (unit DType, size, scale int) {
	switch b := d.Bits(); {
	case d == C64:
		return F32, 4, 2
	case b == 0 || b%8 != 0:
		return U8, 1, 1
	default:
		return d, b / 8, 1
	}
}

// chunkElems trades the cost of a chunk's coder states against the length of a lone tensor's decode: 32,768 where a
// tensor fills a GPU anyway, and for bytes, whose index entry weighs more.
func chunkElems(n uint64, size int) uint32 {
	if size == 1 || n >= 16<<20 {
		return 32768
	}
	return 16384
}

// setTiles fills TileRows and SegElems. Rows beyond what a segment of one full band could hold get lower tiles; beyond
// that the tensor is cut as a vector.
func (g *Geometry) setTiles() {
	g.SegElems = min(MaxSegmentElems, MaxSegmentBytes/uint64(g.UnitSize))
	if g.Rows <= 1 {
		g.Rows, g.Cols = 1, g.Rows*g.Cols
		return
	}
	h := uint64(TileSide)
	for h > 8 && h*g.Cols > g.SegElems {
		h /= 2
	}
	if h*g.Cols > g.SegElems {
		g.Rows, g.Cols = 1, g.Rows*g.Cols
		return
	}
	g.TileRows = uint32(h)
	band := h * g.Cols
	g.SegElems = g.SegElems / band * band
}

// Validate checks a geometry read from a file against the limits, so that every later computation stays in range.
func (g Geometry) Validate() error {
	bad := func(what string) error { return fmt.Errorf("%s: %w", what, ErrGeometry) }
	switch g.UnitSize {
	case 1, 2, 4, 8:
	default:
		return bad("unit size")
	}
	hi, n := bits.Mul64(g.Rows, g.Cols)
	if hi != 0 || n > (1<<63-1)/uint64(g.UnitSize) {
		return bad("unit count")
	}
	if g.ChunkElems == 0 || uint64(g.ChunkElems)*uint64(g.UnitSize) > MaxChunkBytes {
		return bad("chunk size")
	}
	if g.SegElems == 0 || g.SegElems > MaxSegmentElems {
		return bad("segment size")
	}
	if g.TileRows == 0 {
		if g.Rows != 1 {
			return bad("linear rows")
		}
		if n > g.SegElems && g.SegElems%uint64(g.ChunkElems) != 0 {
			return bad("segment not whole chunks")
		}
		return nil
	}
	if g.TileRows > TileSide || g.Rows < 2 || g.Cols == 0 || g.ChunkElems < TileSide || g.Cols > MaxSegmentElems {
		return bad("tile rows")
	}
	if g.SegElems%(uint64(g.TileRows)*g.Cols) != 0 {
		return bad("segment not whole bands")
	}
	return nil
}

// Elems is the number of units of the tensor.
func (g Geometry) Elems() uint64 { return g.Rows * g.Cols }

// Segments is the number of segments; a tensor without elements has none.
func (g Geometry) Segments() int {
	n := g.Elems()
	return int((n + g.SegElems - 1) / g.SegElems)
}

// SegmentRange returns the first unit of segment s and the number of its units.
func (g Geometry) SegmentRange(s int) (first, elems uint64) {
	first = uint64(s) * g.SegElems
	return first, min(g.SegElems, g.Elems()-first)
}

// rowsPerChunk cuts a tile of h rows and w columns into equal chunks of at most ChunkElems.
func (g Geometry) rowsPerChunk(h, w uint32) uint32 {
	most := max(1, g.ChunkElems/w)
	k := (h + most - 1) / most
	return (h + k - 1) / k
}

// Chunks is the number of chunks of segment s.
func (g Geometry) Chunks(s int) int {
	n := 0
	_, elems := g.SegmentRange(s)
	if g.TileRows == 0 {
		return int((elems + uint64(g.ChunkElems) - 1) / uint64(g.ChunkElems))
	}
	rows := elems / g.Cols
	full, last := rows/uint64(g.TileRows), uint32(rows%uint64(g.TileRows))
	n = int(full) * g.bandChunks(g.TileRows)
	if last > 0 {
		n += g.bandChunks(last)
	}
	return n
}

func (g Geometry) bandChunks(h uint32) int {
	count := func(w uint32) int {
		r := g.rowsPerChunk(h, w)
		return int((h + r - 1) / r)
	}
	n := int(g.Cols/TileSide) * count(TileSide)
	if w := uint32(g.Cols % TileSide); w > 0 {
		n += count(w)
	}
	return n
}

// AppendChunks appends the chunks of segment s in the order of the index: band by band, tile by tile from the left,
// rows from the top.
func (g Geometry) AppendChunks(dst []Chunk, s int) []Chunk {
	_, elems := g.SegmentRange(s)
	if g.TileRows == 0 {
		for at := uint64(0); at < elems; at += uint64(g.ChunkElems) {
			w := uint32(min(uint64(g.ChunkElems), elems-at))
			dst = append(dst, Chunk{First: at, Stride: uint64(w), H: 1, W: w})
		}
		return dst
	}
	rows := elems / g.Cols
	for r0 := uint64(0); r0 < rows; r0 += uint64(g.TileRows) {
		h := uint32(min(uint64(g.TileRows), rows-r0))
		for c0 := uint64(0); c0 < g.Cols; c0 += TileSide {
			w := uint32(min(TileSide, g.Cols-c0))
			step := g.rowsPerChunk(h, w)
			for r := uint32(0); r < h; r += step {
				dst = append(dst, Chunk{First: (r0+uint64(r))*g.Cols + c0, Stride: g.Cols, H: min(step, h-r), W: w})
			}
		}
	}
	return dst
}

// Gather copies chunk c of the segment bytes seg, unitSize bytes a unit, into dst and returns that part of dst. Where
// the chunk is contiguous it returns the bytes of seg themselves.
func (c Chunk) Gather(dst, seg []byte, unitSize int) []byte {
	n := c.Elems() * unitSize
	first := int(c.First) * unitSize
	if c.Contiguous() {
		return seg[first : first+n]
	}
	w, stride := int(c.W)*unitSize, int(c.Stride)*unitSize
	for r := 0; r < int(c.H); r++ {
		copy(dst[r*w:(r+1)*w], seg[first+r*stride:])
	}
	return dst[:n]
}

// Scatter copies the decoded bytes src of chunk c to their places in the segment bytes seg.
func (c Chunk) Scatter(seg, src []byte, unitSize int) {
	first := int(c.First) * unitSize
	if c.Contiguous() {
		copy(seg[first:], src[:c.Elems()*unitSize])
		return
	}
	w, stride := int(c.W)*unitSize, int(c.Stride)*unitSize
	for r := 0; r < int(c.H); r++ {
		copy(seg[first+r*stride:first+r*stride+w], src[r*w:])
	}
}
