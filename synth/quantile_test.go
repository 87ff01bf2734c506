package synth

import (
	"math"
	"sort"
	"testing"
)

// studentCDF is the closed form with the standard library's functions.
func studentCDF(t float64) float64 {
	w := 1 + t*t/5
	return 0.5 + (math.Atan(t/math.Sqrt(5))+t/math.Sqrt(5)/w*(1+2/(3*w)))/math.Pi
}

func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// TestTails compares the series with the standard library far into the tail.
func TestTails(t *testing.T) {
	for z := 0.0; z < 6.6; z += 0.03125 {
		if got, want := normalTail(z), math.Erfc(z/math.Sqrt2); math.Abs(got/want-1) > 1e-11 {
			t.Fatalf("normal tail of %v: %v, want %v", z, got, want)
		}
		if got, want := studentTail(z), 2*(1-studentCDF(z)); math.Abs(got-want) > 1e-14 {
			t.Fatalf("student tail of %v: %v, want %v", z, got, want)
		}
	}
	for x := -20.0; x < 20; x += 0.37 {
		if got, want := exp(x), math.Exp(x); math.Abs(got/want-1) > 1e-15*(1+math.Abs(x)) {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	// Far out, Student's tail is c/t^5 (1 - 25/(14 t^2) * 5 + ...).
	far := studentTail(1000) * math.Pow(1000, 5) / (2 / math.Pi * 8 / 15 * math.Pow(5, 2.5))
	if math.Abs(far-1) > 2e-5 {
		t.Fatalf("far Student tail is off by a factor %v", far)
	}
}

// TestDeviates holds a million deviates of each distribution against its distribution function (Kolmogorov-Smirnov),
// their moments, their far tails and the correlation of neighbours.
func TestDeviates(t *testing.T) {
	const n = 1 << 20
	for _, c := range []struct {
		name string
		q    *quantiles
		cdf  func(float64) float64
		kurt float64 // 0: the fourth moment does not settle
	}{
		{"normal", normalTable(), normalCDF, 3},
		{"student", studentTable(), func(z float64) float64 { return studentCDF(z / studentStd) }, 0},
	} {
		v := make([]float32, n)
		c.q.run(v, stream(12345), 0, unit)
		var m1, m2, m4, lag1, lag2 float64
		for i, f := range v {
			x := float64(f)
			m1 += x
			m2 += x * x
			m4 += x * x * x * x
			if i >= 2 {
				lag1 += x * float64(v[i-1])
				lag2 += x * float64(v[i-2])
			}
		}
		sd := 1 / math.Sqrt(n)
		if math.Abs(m1/n) > 4*sd {
			t.Errorf("%s: mean %v", c.name, m1/n)
		}
		if math.Abs(m2/n-1) > 0.012 {
			t.Errorf("%s: variance %v", c.name, m2/n)
		}
		if c.kurt != 0 && math.Abs(m4/n-c.kurt) > 0.04 {
			t.Errorf("%s: fourth moment %v", c.name, m4/n)
		}
		if math.Abs(lag1/n) > 4*sd || math.Abs(lag2/n) > 4*sd {
			t.Errorf("%s: correlation of neighbours %v, %v", c.name, lag1/n, lag2/n)
		}
		for _, z := range []float64{3, 4, 4.5} {
			want, got := 2*n*(1-c.cdf(z)), 0.0
			for _, f := range v {
				if math.Abs(float64(f)) > z {
					got++
				}
			}
			if math.Abs(got-want) > 4.5*math.Sqrt(want)+1 {
				t.Errorf("%s: %v deviates beyond %v, want %v", c.name, got, z, want)
			}
		}
		sort.Slice(v, func(i, j int) bool { return v[i] < v[j] })
		worst := 0.0
		for i, f := range v {
			worst = max(worst, math.Abs(c.cdf(float64(f))-(float64(i)+0.5)/n))
		}
		if worst > 1.95*sd { // one seed in a thousand would fail
			t.Errorf("%s: distance from the distribution function %v, at most %v", c.name, worst, 1.95*sd)
		}
	}
}

// TestQuantilesExact compares the table with the distribution function at chosen probabilities, to the end of the tail.
func TestQuantilesExact(t *testing.T) {
	for _, w := range []uint32{1, 3, 7, 255, 65537, 1<<20*3 | 1, 1<<31 - 1, 1<<31 + 1, 0xC0000001, 1<<32 - 1} {
		p := float64(w) * unit
		z := float64(normalTable().lookup(w)) * unit
		if got := math.Erfc(z / math.Sqrt2); math.Abs(got/p-1) > 1e-3 {
			t.Errorf("normal: draw %d gives %v, whose tail is %v, want %v", w, z, got, p)
		}
		z = float64(studentTable().lookup(w)) * unit / studentStd
		if got := studentTail(z); math.Abs(got/p-1) > 1e-3 {
			t.Errorf("student: draw %d gives %v, whose tail is %v, want %v", w, z, got, p)
		}
		x := float64(exponentialTable().lookup(w)) * unit
		if got := math.Exp(-x); math.Abs(got/p-1) > 1e-3 {
			t.Errorf("exponential: draw %d gives %v, whose tail is %v, want %v", w, x, got, p)
		}
	}
	if z := float64(normalTable().lookup(1)) * unit; z < 6 {
		t.Errorf("the largest normal deviate is %v, want more than 6", z)
	}
}

// TestRunAnywhere holds a run to the single draws, from odd and even starts.
func TestRunAnywhere(t *testing.T) {
	q, s := normalTable(), stream(99)
	for first := uint64(0); first < 5; first++ {
		for n := range 6 {
			v := make([]float32, n)
			q.run(v, s, first, unit)
			for i, f := range v {
				want := float32(float64(q.deviate(s.draw(first+uint64(i)))) * unit)
				if f != want {
					t.Fatalf("run from %d: element %d is %v, want %v", first, i, f, want)
				}
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	v := make([]float32, 2048)
	q := normalTable()
	b.SetBytes(int64(len(v) * 2)) // as BF16
	for i := range b.N {
		q.run(v, stream(1), uint64(i)*2048, unit)
	}
}

func BenchmarkTables(b *testing.B) {
	for range b.N {
		newQuantiles(normalTail, normalDensity, 1)
		newQuantiles(studentTail, studentDensity, studentStd)
	}
}
