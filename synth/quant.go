package synth

import "math"

// Quantised tensors. A real quantiser takes the largest magnitude of a block or row for its scale. To make any part
// alone, the scale is drawn here from the distribution of that largest magnitude; the few elements that would come out
// larger saturate, and one element of each block, at a random place, is set to the largest code, so that every scale is
// reached as a real one is.

// extreme is a draw of the largest magnitude of n standard deviates: the tail probability of the largest is, for n that
// are not tiny, an exponential deviate divided by n.
func (m *matrix) extreme(u uint32, n uint64) float64 {
	p := min(uint64(exponentialTable().lookup(u|1))/n, math.MaxUint32)
	return float64(float64(m.q.lookup(uint32(p)|1)) * unit)
}

// rowStep is the scale of row r of a quantRow tensor.
func (m *matrix) rowStep(r uint64) float32 {
	scale := m.rowScale(r)
	most := float64(scale * m.extreme(uint32(m.extremes.at(r)), m.cols))
	for _, o := range m.outliers {
		z := float64(m.q.lookup(m.values.draw(r*m.cols+o.col)|1)) * unit
		most = max(most, float64(float64(scale*o.factor)*z))
	}
	return float32(most) / maxI8
}

// quantiseRow divides numbers of row r, from column c on, by the row's scale.
func (m *matrix) quantiseRow(dst []float32, r, c uint64) {
	inverse := 1 / m.rowStep(r)
	for i, v := range dst {
		dst[i] = max(-maxI8, min(maxI8, float32(v*inverse)))
	}
	if at := m.places.at(r) % m.cols; at >= c && at-c < uint64(len(dst)) {
		dst[at-c] = float32(math.Copysign(maxI8, float64(dst[at-c])))
	}
}

// blocks is the number of blocks across.
func (m *matrix) blocks() uint64 { return (m.cols + blockSide - 1) / blockSide }

// blockStep is the scale of block (br, bc) of a quantBlock tensor; m.rowScales are those of its rows.
func (m *matrix) blockStep(br, bc uint64) float32 {
	width := min(blockSide, m.cols-bc*blockSide)
	draws := m.extremes.sub(br*m.blocks() + bc)
	most := 0.0
	for i, scale := range m.rowScales {
		most = max(most, float64(scale*m.extreme(draws.draw(uint64(i)), width)))
	}
	return float32(most) / maxE4M3
}

// setRows fills m.rowScales for the rows of the row of blocks br.
func (m *matrix) setRows(br uint64) {
	m.rowScales = m.rowScales[:0]
	for r := br * blockSide; r < min((br+1)*blockSide, m.rows); r++ {
		m.rowScales = append(m.rowScales, m.rowScale(r))
	}
}

// quantiseBlocks divides numbers of row r, from column c on, by the scales of their blocks.
func (m *matrix) quantiseBlocks(dst []float32, r, c uint64) {
	br := r / blockSide
	if m.stripe != br {
		m.stripe = br
		m.setRows(br)
		m.inverse = m.inverse[:0]
		for bc := range m.blocks() {
			m.inverse = append(m.inverse, 1/m.blockStep(br, bc))
		}
	}
	for len(dst) > 0 {
		bc := c / blockSide
		n := min(uint64(len(dst)), (bc+1)*blockSide-c)
		inverse := m.inverse[bc]
		for i, v := range dst[:n] {
			dst[i] = float32(v * inverse)
		}
		place := m.places.at(br*m.blocks() + bc)
		row := br*blockSide + place>>32%uint64(len(m.rowScales))
		col := bc*blockSide + place&math.MaxUint32%min(blockSide, m.cols-bc*blockSide)
		if row == r && col >= c && col-c < n {
			dst[col-c] = float32(math.Copysign(maxE4M3, float64(dst[col-c])))
		}
		dst, c = dst[n:], c+n
	}
}

// fillScales sets dst to the scales first, first+1, ... of the tensor that m.of describes.
func (m *matrix) fillScales(dst []float32, first uint64) {
	of := m.quantised
	if of.quant == quantRow {
		for i := range dst {
			dst[i] = of.rowStep(first + uint64(i))
		}
		return
	}
	across := of.blocks()
	for i := range dst {
		br, bc := (first+uint64(i))/across, (first+uint64(i))%across
		if of.stripe != br {
			of.stripe = br
			of.setRows(br)
		}
		dst[i] = of.blockStep(br, bc)
	}
}
