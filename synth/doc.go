// Package synth makes checkpoints that look like trained ones: the names, shapes, element types, shards and side files
// of public models, filled with values whose statistics are those of trained weights. It also makes the edge files, on
// which a codec is likely to trip, and fine-tunes of a given checkpoint. It knows safetensors and no code.
//
// # Randomness
//
// Every element is a function of the seed, the tensor's name and shape and the element's index alone. So any part of
// any tensor can be made by itself, in any order and by any number of workers, and the bytes are always the same. A
// 64-bit mixer over a counter yields two 32-bit draws, which an inverse distribution function held as a table (32
// pieces to each halving of the tail, linear between) turns into a deviate of 6 sigma and more.
//
// # The same bytes on every platform
//
// Draws and deviates are integers. What is left of floating point is held to operations that IEEE 754 defines to the
// bit: single additions, multiplications, divisions, square roots and conversions. Every product is converted explicitly
// before it is added to anything, which in Go forbids fusing the two into one rounding, and the exponentials and
// distribution functions are this package's own, because the standard library's differ from one architecture to the
// next. Golden hashes in the tests hold all of it.
//
// # Values
//
// Projections v, o, gate, up and down are Gaussian with sigma 0.015 to 0.02 and a log-normal scale for each row (tau
// 0.25); q and k are Student t of 5 degrees with sigma 0.02 to 0.035; embeddings have sigma 0.015, heads 0.02; norms are
// near 1; and in every matrix but those with block scales one column of a thousand is 4 to 8 times larger. The
// exponents of a BF16 model so made hold 2.58 to 2.63 bits. Quantised tensors take the scale of a block or row from the
// distribution of the largest of its elements instead of from the elements themselves, so that they too can be made in
// parts.
package synth
