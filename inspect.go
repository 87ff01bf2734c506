package wcodec

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
)

// Inspection is what Inspect finds out about a tensor.
type Inspection struct {
	Name       string   `json:"name"`
	DType      string   `json:"dtype"`
	Shape      []uint64 `json:"shape"`
	PlainBytes int64    `json:"plain_bytes"`
	Stored     int64    `json:"stored_bytes"`
	Digest     string   `json:"digest"`
	Unit       string   `json:"unit"` // what the codes take as one element
	TileRows   int      `json:"tile_rows"`
	TileCols   int      `json:"tile_cols"` // both 0: cut as a vector
	ChunkUnits int      `json:"chunk_units"`

	Segments []SegmentInfo `json:"segments"`

	// Units counts the units; the figures in bits are a unit's. Reached is what is stored, everything counted. ByteEntropy
	// is the order-0 entropy of each byte of a unit, added up. For floats, Exponents counts each biased exponent,
	// ExponentEntropy is their order-0 entropy, and FieldLimit adds the sign and mantissa bits to it.
	Units           int64    `json:"units"`
	Reached         float64  `json:"reached_bits"`
	ByteEntropy     float64  `json:"byte_entropy_bits"`
	Exponents       []uint64 `json:"exponents,omitempty"`
	ExponentEntropy float64  `json:"exponent_entropy_bits,omitempty"`
	FieldLimit      float64  `json:"field_limit_bits,omitempty"`
}

// SegmentInfo describes a stored segment.
type SegmentInfo struct {
	Code       string `json:"code"`
	Parameters string `json:"parameters,omitempty"` // the code's own words for its table
	Offset     int64  `json:"offset"`
	Plain      int64  `json:"plain_bytes"`
	Stored     int64  `json:"stored_bytes"`
	Table      int    `json:"table_bytes"`
	Chunks     int    `json:"chunks"`
	RawChunks  int    `json:"raw_chunks"`
	Smallest   int    `json:"smallest_chunk_bytes"`
	Largest    int    `json:"largest_chunk_bytes"`
}

// Inspect decodes the tensor and says how it is stored and how close that comes to the entropy of its fields.
func (t *Tensor) Inspect(ctx context.Context) (*Inspection, error) {
	g := t.t.Geometry
	in := &Inspection{
		Name: t.Name(), DType: t.DType(), Shape: t.Shape(), PlainBytes: t.Size(), Stored: t.StoredSize(),
		Unit: string(g.Unit), TileRows: int(g.TileRows), ChunkUnits: int(g.ChunkElems), Units: int64(g.Elems()),
		Digest: hexDigest(t.t.Digest), Segments: make([]SegmentInfo, len(t.t.Segments)),
	}
	if g.TileRows > 0 {
		in.TileCols = 256
	}
	count := &counter{size: g.UnitSize}
	if f, ok := g.Unit.Float(); ok {
		count.shift, count.mask = f.Mant, 1<<f.Exp-1
		count.exps = make([]uint64, 1<<f.Exp)
	}
	_, err := decodeAll(ctx, []*Tensor{t}, decodeOptions{}, func(s *segment) sink { return &inspectSink{s, count, in} })
	if err != nil {
		return nil, err
	}
	if in.Units == 0 {
		return in, nil
	}
	in.Reached = float64(in.Stored) * 8 / float64(in.Units)
	for k := range g.UnitSize {
		in.ByteEntropy += entropy(count.bytes[k][:])
	}
	if count.exps != nil {
		in.Exponents = count.exps
		in.ExponentEntropy = entropy(count.exps)
		in.FieldLimit = in.ExponentEntropy + float64(8*g.UnitSize-len2(count.mask))
	}
	return in, nil
}

func len2(mask uint64) int {
	n := 0
	for ; mask > 0; mask >>= 1 {
		n++
	}
	return n
}

func hexDigest(d [16]byte) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 32)
	for _, x := range d {
		b = append(b, digits[x>>4], digits[x&15])
	}
	return string(b)
}

// entropy is the order-0 entropy of a histogram in bits.
func entropy(h []uint64) float64 {
	n, sum := 0.0, 0.0
	for _, c := range h {
		if c > 0 {
			n += float64(c)
			sum += float64(c) * math.Log2(float64(c))
		}
	}
	if n == 0 {
		return 0
	}
	return math.Log2(n) - sum/n
}

// counter is the histograms of one tensor.
type counter struct {
	size  int
	shift int
	mask  uint64
	mu    sync.Mutex
	bytes [8][256]uint64
	exps  []uint64
}

func (c *counter) add(units []byte) {
	var bytes [8][256]uint64
	for i := 0; i < len(units); i += c.size {
		for k := range c.size {
			bytes[k][units[i+k]]++
		}
	}
	var exps []uint64
	if c.exps != nil {
		exps = make([]uint64, len(c.exps))
		for i := 0; i < len(units); i += c.size {
			exps[unit(units[i:i+c.size])>>c.shift&c.mask]++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.size {
		for s, n := range bytes[k] {
			c.bytes[k][s] += n
		}
	}
	for s, n := range exps {
		c.exps[s] += n
	}
}

func unit(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// inspectSink counts the units and describes the segment.
type inspectSink struct {
	s     *segment
	count *counter
	in    *Inspection
}

func (*inspectSink) buffer(*partRun, uint64, uint64) []byte { return nil }
func (*inspectSink) part(*partRun) error                    { return nil }
func (k *inspectSink) chunk(_ *partRun, _ int, units []byte) error {
	k.count.add(units)
	return nil
}

func (k *inspectSink) finish() error {
	s := k.s
	info := &k.in.Segments[s.no]
	*info = SegmentInfo{
		Code: codeName(s.seg.Code), Offset: int64(s.seg.Offset), Plain: int64(s.byteLen()), Stored: int64(s.seg.StoredLen()),
		Table: s.seg.TableLen, Chunks: len(s.index), Smallest: math.MaxInt,
	}
	if d, ok := s.coder.(interface{ Describe() string }); ok {
		info.Parameters = d.Describe()
	}
	for _, e := range s.index {
		if e.Raw {
			info.RawChunks++
		}
		info.Smallest, info.Largest = min(info.Smallest, int(e.Length)), max(info.Largest, int(e.Length))
	}
	return nil
}
