package synth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/tensor"
)

// Options says what to make.
type Options struct {
	Model   string // one of Models
	Layers  int    // the first so many layers; 0: all
	Shrink  int    // what to divide every dimension by, rounding up to multiples of 8; 0 and 1: nothing
	Seed    uint64
	Workers int // 0: one for each core

	// Progress, if not nil, is called from one goroutine at a time with the bytes written so far and in all.
	Progress func(done, total int64)
}

// Shard is one safetensors file of a checkpoint.
type Shard struct {
	File     string
	Tensors  []Tensor          // in the order of their data
	Metadata map[string]string // of the header
	DataSize uint64            // bytes of all tensors
}

// Header returns the bytes of the file before its data.
func (s *Shard) Header() ([]byte, error) {
	list := make([]safetensors.Tensor, len(s.Tensors))
	for i, t := range s.Tensors {
		list[i] = safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Begin: t.Offset, End: t.Offset + t.Size}
	}
	b, err := safetensors.AppendHeader(nil, list, s.Metadata)
	if err != nil {
		return nil, fmt.Errorf("synth: %s: %w", s.File, err)
	}
	return b, nil
}

// model is how one kind of checkpoint is made.
type model struct {
	name     string
	layers   int
	maxShard uint64 // bytes of tensors in a shard, unless one tensor alone has more
	shardFmt string // file name of a shard, of its number and the number of shards
	build    func(b *builder) config
	raw      bool // an edge file: tensors stay in order, no side files
}

// config is what becomes config.json. Its keys are written sorted.
type config map[string]any

// models lists the kinds, in the order of Models.
var models = []model{
	{name: "llama-2-7b", layers: 32, maxShard: 10e9, build: llama2.build},
	{name: "llama-3-8b", layers: 32, maxShard: 5e9, build: llama3Small.build},
	{name: "llama-3-70b", layers: 80, maxShard: 5e9, build: llama3Large.build},
	{name: "qwen3-30b-a3b", layers: 48, maxShard: 4e9, build: buildQwen3},
	{name: "deepseek-fp8", layers: 61, maxShard: 43e8, shardFmt: "model-%05d-of-%06d.safetensors", build: buildDeepSeek},
	{name: "tinyllama-f32", layers: 22, maxShard: 5e9, build: tinyLlamaF32.build},
	{name: "tinyllama-int8", layers: 22, maxShard: 5e9, build: tinyLlamaInt8.build},
	{name: "pythia-410m", layers: 24, maxShard: 5e9, build: buildPythia},
	{name: "gpt2", layers: 12, maxShard: 5e9, build: buildGPT2},
	{name: "edge", raw: true, build: buildEdge},
	{name: "tiny", raw: true, build: buildTiny},
}

// Models returns the names that Options.Model may have.
func Models() []string {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.name
	}
	return names
}

// plan resolves options: the shards of the checkpoint, and its configuration (nil for the edge files).
func plan(o Options) (shards []Shard, c config, err error) {
	i := slices.IndexFunc(models, func(m model) bool { return m.name == o.Model })
	if i < 0 {
		return nil, nil, fmt.Errorf("synth: %w %q; there are %s", ErrModel, o.Model, strings.Join(Models(), ", "))
	}
	m := &models[i]
	switch {
	case o.Shrink < 0 || o.Shrink > 1<<16:
		return nil, nil, fmt.Errorf("synth: shrinking by %d: %w", o.Shrink, ErrRange)
	case o.Layers < 0 || o.Layers > m.layers:
		return nil, nil, fmt.Errorf("synth: %d layers of %s, which has %d: %w", o.Layers, m.name, m.layers, ErrRange)
	}
	b := &builder{layers: o.Layers, all: m.layers, shrink: uint64(max(1, o.Shrink))}
	if b.layers == 0 {
		b.layers = m.layers
	}
	c = m.build(b)
	for i := range b.tensors {
		t := &b.tensors[i]
		if t.Size == 0 && t.DType.Known() {
			if t.Size, err = tensor.ByteLen(t.DType, t.Shape); err != nil {
				return nil, nil, fmt.Errorf("synth: tensor %q: %w", t.Name, err)
			}
		}
	}
	if m.raw {
		s := Shard{File: "model.safetensors", Tensors: b.tensors, Metadata: map[string]string{"made by": "synth"}}
		s.place()
		return []Shard{s}, nil, nil
	}
	return split(b.tensors, max(1, m.maxShard/(b.shrink*b.shrink)), cmp.Or(m.shardFmt, "model-%05d-of-%05d.safetensors")), c, nil
}

// Plan lists the shards and tensors that Write would write, without making data.
func Plan(o Options) ([]Shard, error) {
	shards, _, err := plan(o)
	return shards, err
}

// split cuts tensors, in the order of a state dict, into shards as transformers does: a new one where the next tensor
// would bring the running one beyond most. Within a shard the order is that of the reference writer: by falling element
// type, then by name.
func split(tensors []Tensor, most uint64, format string) []Shard {
	var shards []Shard
	var size uint64
	for _, t := range tensors {
		if len(shards) == 0 || size+t.Size > most {
			shards = append(shards, Shard{Metadata: map[string]string{"format": "pt"}})
			size = 0
		}
		s := &shards[len(shards)-1]
		s.Tensors = append(s.Tensors, t)
		size += t.Size
	}
	for i := range shards {
		s := &shards[i]
		s.File = fmt.Sprintf(format, i+1, len(shards))
		if len(shards) == 1 {
			s.File = "model.safetensors"
		}
		slices.SortFunc(s.Tensors, func(a, b Tensor) int {
			return cmp.Or(cmp.Compare(rank(b.DType), rank(a.DType)), cmp.Compare(a.Name, b.Name))
		})
		s.place()
	}
	return shards
}

// place gives every tensor the bytes after those of the one before it.
func (s *Shard) place() {
	for i := range s.Tensors {
		s.Tensors[i].Offset = s.DataSize
		s.DataSize += s.Tensors[i].Size
	}
}

// rank is the place of a type in the reference implementation's enumeration, by which its writer sorts.
func rank(d tensor.DType) int {
	return slices.Index([]tensor.DType{
		tensor.BOOL, tensor.U8, tensor.I8, tensor.F8E4M3, tensor.F16, tensor.BF16, tensor.F32, tensor.I64,
	}, d)
}

// builder collects the tensors of a model.
type builder struct {
	tensors     []Tensor
	layers, all int
	shrink      uint64
}

// dim is a dimension of the model, shrunk to a multiple of 8.
func (b *builder) dim(n uint64) uint64 {
	if b.shrink == 1 {
		return n
	}
	return (n + 8*b.shrink - 1) / (8 * b.shrink) * 8
}

// heads shrinks the numbers of attention heads together as far as they go, then the head itself.
func (b *builder) heads(heads, kv, size uint64) (uint64, uint64, uint64) {
	rest := b.shrink
	for rest%2 == 0 && heads%2 == 0 && kv%2 == 0 {
		heads, kv, rest = heads/2, kv/2, rest/2
	}
	if rest > 1 {
		size = (size + 8*rest - 1) / (8 * rest) * 8
	}
	return heads, kv, size
}

// add appends a tensor in the order of the state dict.
func (b *builder) add(name string, d tensor.DType, src source, shape ...uint64) {
	b.tensors = append(b.tensors, Tensor{Name: name, DType: d, Shape: shape, src: src})
}
