package codec

// The sample of a segment: whole up to sampleWhole units, else samplePieces pieces of samplePiece units, evenly spread.
// Four times as many units would save 0.02% on weights whose rows differ in scale, and take four times as long to fit.
const (
	sampleWhole  = 256 << 10
	samplePieces = 256
	samplePiece  = 1024
)

// SamplePlan returns how a segment of n units is sampled: as pieces runs of size consecutive units. One piece is the
// whole segment.
func SamplePlan(n int) (pieces, size int) {
	if n <= sampleWhole {
		return 1, n
	}
	return samplePieces, samplePiece
}

// sampleAt is the first unit of piece i of a segment of n units, an even number so that neighbours stay pairs.
func sampleAt(i, n int) int {
	return int(int64(n-samplePiece)*int64(i)/(samplePieces-1)) &^ 1
}

// Sample returns what Fit sees of the segment bytes seg, unitSize bytes a unit: seg itself where exact is true, else
// pieces of it, gathered into dst, which is grown where it is too short. It depends on the length alone.
func Sample(dst, seg []byte, unitSize int) (sample []byte, exact bool) {
	n := len(seg) / unitSize
	pieces, size := SamplePlan(n)
	if pieces == 1 {
		return seg, true
	}
	dst = dst[:0]
	for i := range pieces {
		at := sampleAt(i, n) * unitSize
		dst = append(dst, seg[at:at+size*unitSize]...)
	}
	return dst, false
}
