package wcodec_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/wcodec/wcodec"
	"github.com/wcodec/wcodec/safetensors"
)

// checkpoint writes a safetensors file with two BF16 matrices and returns its path.
func checkpoint(dir string) string {
	tensors := []safetensors.Tensor{
		{Name: "up.weight", DType: "BF16", Shape: []uint64{512, 1024}, End: 512 * 1024 * 2},
		{Name: "down.weight", DType: "BF16", Shape: []uint64{1024, 512}, End: 512 * 1024 * 2},
	}
	safetensors.Place(tensors)
	file, err := safetensors.AppendHeader(nil, tensors, nil)
	if err != nil {
		log.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2 * 512 * 1024 {
		file = binary.LittleEndian.AppendUint16(file, uint16(math.Float32bits(float32(r.NormFloat64()*0.02))>>16))
	}
	path := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(path, file, 0o666); err != nil {
		log.Fatal(err)
	}
	return path
}

// A checkpoint is packed, checked, and given back byte for byte.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	src := checkpoint(dir)
	packed, back := src+".wcodec", filepath.Join(dir, "back.safetensors")

	stats, err := wcodec.CompressFile(ctx, packed, []string{src}, wcodec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d tensors, a third smaller: %v\n", stats.Tensors, stats.StoredBytes*3 < stats.PlainBytes*2+stats.PlainBytes/10)
	if _, err := wcodec.DecompressFile(ctx, back, packed, wcodec.Options{}); err != nil {
		log.Fatal(err)
	}
	a, _ := os.ReadFile(src)
	b, _ := os.ReadFile(back)
	fmt.Println("identical:", bytes.Equal(a, b))
	// Output:
	// 2 tensors, a third smaller: true
	// identical: true
}

// One tensor, and a column slice of it for one of four ranks, are read without the rest of the file.
func ExampleTensor_Slice() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	src := checkpoint(dir)
	if _, err := wcodec.CompressFile(ctx, src+".wcodec", []string{src}, wcodec.Options{}); err != nil {
		log.Fatal(err)
	}

	r, err := wcodec.Open(src + ".wcodec")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	up, err := r.Tensor("up.weight")
	if err != nil {
		log.Fatal(err)
	}
	const rank = 1
	s, err := up.Slice(wcodec.Range{Start: 0, Stop: 512}, wcodec.Range{Start: rank * 256, Stop: (rank + 1) * 256})
	if err != nil {
		log.Fatal(err)
	}
	weights, err := s.Read(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(up.DType(), up.Shape(), "->", s.Shape(), len(weights), "bytes")
	// Output:
	// BF16 [512 1024] -> [512 256] 262144 bytes
}

// Streams work as well: here from memory to memory.
func ExampleCompress() {
	ctx := context.Background()
	text := bytes.Repeat([]byte("any file is welcome; "), 1000)
	var packed bytes.Buffer
	_, err := wcodec.Compress(ctx, &packed, []wcodec.Source{{Name: "notes.txt", Reader: bytes.NewReader(text), Size: -1}}, wcodec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	r, err := wcodec.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		log.Fatal(err)
	}
	m := r.Members()[0]
	var back bytes.Buffer
	if _, err := m.Decompress(ctx, &back, wcodec.Options{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Name(), m.Kind(), bytes.Equal(back.Bytes(), text), packed.Len() < len(text)/10)
	// Output:
	// notes.txt blob true true
}
