package rans

// fitPlanes chooses a method for each byte of a unit. Where the sample is not all there is, a coded plane can express
// every value: one value without a frequency would cost a whole chunk.
func fitPlanes(size int, sample []byte, exact bool) estimate {
	n := len(sample) / size
	planes := make([]bytePlane, size)
	var total uint64
	buf := make([]byte, min(n, maxUnits))
	for k := range planes {
		var h [256]uint32
		if size == 1 {
			histogram(&h, sample)
		} else {
			for from := 0; from < n; from += maxUnits {
				part := buf[:min(maxUnits, n-from)]
				gather(part, sample[from*size:], size, k)
				histogram(&h, part)
			}
		}
		var cost uint64
		planes[k], cost = fitPlane(&h, n, exact)
		total += cost
	}
	coder := newByteCoder(planes, 0)
	total, coder.bits = perUnit(total, n, coder.AppendTable(nil), exact)
	return estimate{coder, total}
}

// fitPlane chooses between a constant, a coded plane, and, where that does not save one part in a hundred, a raw one.
func fitPlane(h *[256]uint32, n int, exact bool) (bytePlane, uint64) {
	var w weights
	for s, v := range h {
		w[s] = uint64(v) * weightScale
		if !exact {
			w[s] = max(1, w[s])
		}
	}
	if top := w.top(); exact && h[top] == uint32(n) {
		return bytePlane{method: methodConstant, value: byte(top)}, 0
	}
	f := w.normalise()
	raw := 8 * uint64(n) * costOne
	// The last symbols of a chunk are payload instead, which the states carry for nothing.
	chunks := uint64(chunksOf(n))
	cost := w.cost(f) / weightScale
	cost = cost - min(cost, cost/uint64(n)*payloadCap*chunks) + chunks*blockBits*costOne
	table := uint64(0)
	if exact {
		table = uint64(8*len(f.append(nil))) * costOne
	}
	if cost+table > raw-raw/100 {
		return bytePlane{method: methodRaw}, raw
	}
	return bytePlane{method: methodCoded, m: newModel(f)}, cost
}
