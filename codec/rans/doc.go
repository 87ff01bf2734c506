// Package rans is the code `rans` of FORMAT section "rans": units are split into symbols, which go through 32
// interleaved rANS states, and raw planes, which do not. It has a mode for pairs of float exponents, one for an exponent
// with its top mantissa bits, and one for bytes. It knows neither the file nor the geometry; the only thing it takes for
// granted is that a chunk has at most 32,768 units.
package rans
