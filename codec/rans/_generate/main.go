// Command _generate writes the amd64 assembly of package rans, one instruction set a run, and its Go stubs.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	isa := flag.String("isa", "", "instruction set: avx512 or avx2")
	flag.Parse()
	ConstraintExpr("!noasm")
	switch *isa {
	case "avx512":
		decode512("decode1AVX512", 1)
		decode512("decode2AVX512", 2)
		encode512()
		mergeBF16x512()
		splitBF16x512()
		absent512()
		everyUnit(splitUnits512)
		everyUnit(mergeUnits512)
	case "avx2":
		decode256()
		encode256()
		mergeBF16x256()
		splitBF16x256()
		absent256()
		everyUnit(splitUnits256)
		everyUnit(mergeUnits256)
	default:
		log.Fatalf("no such instruction set: %q", *isa)
	}
	Generate()
}
