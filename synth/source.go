package synth

import (
	"math"

	"github.com/wcodec/wcodec/tensor"
)

// law says what the elements of a tensor are.
type law uint8

const (
	lawNormal   law = iota    // Gaussian of standard deviation sigma
	lawStudent                // Student t of 5 degrees, standard deviation sigma
	lawNear1                  // 1 plus a Gaussian of standard deviation sigma
	lawScale                  // the scales of the quantised tensor source.of
	lawRotary                 // inverse frequencies of rotary position embeddings
	lawMask                   // 1 where the column is not beyond the row, else 0
	lastFloat       = lawMask // laws up to here make numbers, those beyond make bits
	lawBits     law = iota    // random bits
	lawRepeat                 // source.word again and again
	lawCount                  // the element's index, as far as the element holds it
	lawNaN                    // float NaNs of random sign and payload
	lawBool                   // 0 or 1
	lawExponent               // biased exponents of block scales around 2^-8 (E8M0)
	lawPatches                // by turns of 1,000 bytes: zeros, random bits, one byte again and again
)

// quant says how a tensor is brought to its narrow type.
type quant uint8

const (
	quantNone  quant = iota
	quantBlock       // a scale for each 128 x 128 block, the largest magnitude at 448 (E4M3)
	quantRow         // a scale for each row, the largest magnitude at 127 (I8)
)

const (
	blockSide = 128
	maxE4M3   = 448
	maxI8     = 127
)

// source is how the values of a tensor come about.
type source struct {
	law    law
	lo, hi float64 // the tensor's sigma is drawn from here
	skew   bool    // more often near lo than near hi
	tau    float64 // sigma of the logarithm of the rows' scales
	wide   bool    // one column of a thousand is 4 to 8 times larger
	cast   bool    // values are rounded to BF16 before they take the tensor's type
	quant  quant
	of     *Tensor // lawScale: the quantised tensor
	word   uint64  // lawRepeat: the bits; lawRotary: the base
}

// The independent sequences of a tensor.
const (
	subValues = iota
	subRows
	subColumns
	subExtremes
	subPlaces
	subSigma
)

// outlier is a column that is larger than its neighbours.
type outlier struct {
	col    uint64
	factor float64
}

// matrix is a tensor made ready for a run of its elements: what is drawn once for a tensor, a row or a block.
type matrix struct {
	source
	dtype      tensor.DType
	size       int // bytes of an element
	rows, cols uint64
	sigma      float64
	q          *quantiles
	values     stream
	rowKeys    stream
	extremes   stream
	places     stream
	outliers   []outlier // ascending
	stripe     uint64    // quantBlock: the row of blocks that inverse is of
	inverse    []float32 // quantBlock: 1 / scale of each block of the stripe
	rowScales  []float64 // quantBlock: the scales of the rows of the stripe
	quantised  *matrix   // lawScale: the tensor whose scales these are
}

// newMatrix prepares t, whose stream is key, for n elements from first on.
func newMatrix(t *Tensor, key stream, first, n uint64) *matrix {
	size, units := t.units()
	m := &matrix{
		source: t.src, dtype: t.DType, size: size, rows: 1, cols: units, q: normalTable(), stripe: math.MaxUint64,
		values: key.sub(subValues), rowKeys: key.sub(subRows), extremes: key.sub(subExtremes), places: key.sub(subPlaces),
	}
	if k := len(t.Shape); k >= 2 && units > 0 {
		m.rows = units / t.Shape[k-1]
		m.cols = t.Shape[k-1]
	}
	if m.law == lawStudent {
		m.q = studentTable()
	}
	m.sigma = uniform(key.sub(subSigma).draw(0), m.lo, m.hi)
	if m.skew {
		u := uniform(key.sub(subSigma).draw(0), 0, 1)
		m.sigma = m.lo + float64((m.hi-m.lo)*float64(u*u))
	}
	if m.wide {
		lo, hi := first%m.cols, first%m.cols+n
		if hi > m.cols || m.quant == quantRow {
			lo, hi = 0, m.cols // a scale depends on every column
		}
		m.listOutliers(key.sub(subColumns), lo, hi)
	}
	return m
}

// listOutliers finds the large columns of [lo, hi).
func (m *matrix) listOutliers(s stream, lo, hi uint64) {
	const rarity = (1 << 32) / 1000
	for c := lo; c < hi; c++ {
		if h := s.at(c); uint32(h) < rarity {
			m.outliers = append(m.outliers, outlier{c, uniform(uint32(h>>32), 4, 8)})
		}
	}
}

// rowScale is sigma times the log-normal factor of row r.
func (m *matrix) rowScale(r uint64) float64 {
	if m.tau == 0 {
		return m.sigma
	}
	z := float64(float64(normalTable().deviate(uint32(m.rowKeys.at(r)))) * unit)
	return float64(m.sigma * exp(float64(m.tau*z)))
}

// fill sets dst to the numbers first, first+1, ... of the tensor in row-major order.
func (m *matrix) fill(dst []float32, first uint64) {
	for len(dst) > 0 {
		r, c := first/m.cols, first%m.cols
		n := min(uint64(len(dst)), m.cols-c)
		m.fillRow(dst[:n], r, c)
		dst, first = dst[n:], first+n
	}
}

// fillRow sets dst to the numbers of row r from column c on.
func (m *matrix) fillRow(dst []float32, r, c uint64) {
	first := r*m.cols + c
	switch m.law {
	case lawScale:
		m.fillScales(dst, first)
		return
	case lawRotary:
		step := -float64(logOf(m.word) / float64(m.cols))
		for i := range dst {
			dst[i] = float32(exp(float64(step * float64(c+uint64(i)))))
		}
		return
	case lawMask:
		for i := range dst {
			dst[i] = 0
			if c+uint64(i) <= r%m.cols {
				dst[i] = 1
			}
		}
		return
	}
	scale := m.rowScale(r)
	m.q.run(dst, m.values, first, scale*unit)
	for _, o := range m.outliers {
		if o.col >= c && o.col-c < uint64(len(dst)) {
			dst[o.col-c] = m.q.scaled(m.values.draw(r*m.cols+o.col), float64(scale*o.factor)*unit)
		}
	}
	switch {
	case m.law == lawNear1:
		for i, v := range dst {
			dst[i] = 1 + v
		}
	case m.quant == quantRow:
		m.quantiseRow(dst, r, c)
	case m.quant == quantBlock:
		m.quantiseBlocks(dst, r, c)
	}
}

// logOf is the natural logarithm of the bases that rotary embeddings use.
func logOf(base uint64) float64 {
	x := 0.0
	for range 60 { // Newton on e^x = base
		x += float64(float64(base)*exp(-x)) - 1
		x = min(x, 40)
	}
	return x
}

// bits is element i as an integer, for the laws that make no numbers.
func (m *matrix) bits(i uint64) uint64 {
	h := m.values.at(i)
	switch m.law {
	case lawRepeat:
		return m.word
	case lawCount:
		return i
	case lawBool:
		return h >> 63
	case lawExponent:
		return 118 + h>>63 + h>>62&1 + h>>61&1
	case lawNaN:
		return nanBits(h, m.size)
	case lawPatches:
		return [3]uint64{0, h, 0x5A}[i/1000%3]
	}
	return h
}

// nanBits turns random bits into a NaN of the BF16, F32 or F64 type of that many bytes.
func nanBits(h uint64, size int) uint64 {
	switch size {
	case 2:
		return h | 0x7F80 | 1<<(h>>32%7)
	case 4:
		return h | 0x7F800000 | 1<<(h>>32%23)
	}
	return h | 0x7FF<<52 | 1<<(h>>8%52)
}
