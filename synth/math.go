package synth

import "math"

// The functions here use single operations that IEEE 754 rounds to the bit, and convert every product before adding to
// it, so that no compiler fuses them. See "The same bytes on every platform" in the package comment.

// exp is e to the power of x for |x| below 700.
func exp(x float64) float64 {
	const hi, lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10 // ln 2 in two parts
	k := math.Floor(float64(x*(1/math.Ln2)) + 0.5)
	r := float64(x-float64(k*hi)) - float64(k*lo)
	sum, term := 1.0, 1.0
	for n := 1; n <= 16; n++ {
		term = float64(term*r) / float64(n)
		sum += term
	}
	return float64(sum * math.Float64frombits(uint64(1023+int64(k))<<52))
}

// normalDensity is the density of the standard normal distribution.
func normalDensity(z float64) float64 {
	return float64(exp(-float64(float64(z*z)/2)) * 0.3989422804014326779)
}

// normalTail is the probability that a standard normal deviate exceeds z, not negative, in magnitude.
func normalTail(z float64) float64 {
	z2 := float64(z * z)
	if z < 3 {
		sum, term := z, z
		for n := 3; n < 120; n += 2 {
			term = float64(term*z2) / float64(n)
			sum += term
		}
		return 1 - float64(2*float64(normalDensity(z)*sum))
	}
	f := z
	for n := 80; n >= 1; n-- {
		f = z + float64(n)/f
	}
	return float64(2*normalDensity(z)) / f
}

// studentDensity is the density of Student's t of 5 degrees.
func studentDensity(t float64) float64 {
	w := 1 + float64(t*t)/5
	return 0.3796066898224944 / float64(float64(w*w)*w)
}

// studentTail is the probability that a Student t deviate of 5 degrees exceeds t, not negative, in magnitude.
//
// With s = sin(phi), phi = atan(sqrt(5)/t), it is 2/pi * (phi - cos(phi) * (s + 2/3 s^3)), and the series of the arc
// sine, cos(phi) * (s + 2/3 s^3 + 2*4/(3*5) s^5 + ...), begins with just what is taken away: no cancellation is left.
// Near the centre the complement converges faster.
func studentTail(t float64) float64 {
	t2 := float64(t * t)
	sine, cosine := math.Sqrt(5/(5+t2)), math.Sqrt(t2/(5+t2))
	if t2 > 5 {
		return float64(float64(2/math.Pi) * float64(cosine*arcSeries(sine, 5)))
	}
	theta := float64(sine * arcSeries(cosine, 1))
	c2 := float64(sine * sine)
	rest := float64(float64(cosine*sine) * (1 + float64(2*c2)/3))
	return 1 - float64(float64(2/math.Pi)*(theta+rest))
}

// arcSeries sums s + 2/3 s^3 + 2*4/(3*5) s^5 + ... from the term of s to the power of from on. The arc sine of s is the
// whole sum times the cosine.
func arcSeries(s float64, from int) float64 {
	s2, term, sum := float64(s*s), s, 0.0
	for n := 1; n < 150; n += 2 {
		if n >= from {
			sum += term
		}
		term = float64(term*s2) * float64(n+1) / float64(n+2)
	}
	return sum
}
