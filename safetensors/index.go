package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Placement says in which shard of an index a tensor is.
type Placement struct {
	Tensor string
	Shard  int // index into Index.Shards
}

// Index is a parsed shard index, the model.safetensors.index.json of a checkpoint. It keeps the original bytes.
type Index struct {
	Raw     []byte
	Shards  []string    // the file names, sorted, each once; no name leads out of its directory
	Tensors []Placement // in the order of the file

	// TotalSize is metadata.total_size, or -1 where there is none. Writers disagree on what they count, so
	// nothing can be held against it.
	TotalSize int64

	byName map[string]int // index into Tensors
}

// ParseIndex parses a shard index. It keeps b as Index.Raw. What the file says beyond weight_map and
// metadata.total_size must be JSON and is otherwise ignored. A tensor listed twice, or a shard whose name is more than the
// base name of a file, is refused.
func ParseIndex(b []byte) (*Index, error) {
	x, err := parseIndex(b)
	if err != nil {
		return nil, fmt.Errorf("shard index: %w", err)
	}
	return x, nil
}

func parseIndex(b []byte) (*Index, error) {
	if len(b) > MaxHeader {
		return nil, fmt.Errorf("%d bytes, the most is %d: %w", len(b), MaxHeader, ErrTooLarge)
	}
	s := scanner{text: string(b)}
	if !utf8.ValidString(s.text) {
		return nil, fmt.Errorf("not UTF-8: %w", ErrInvalid)
	}
	x := &Index{Raw: b, TotalSize: -1}
	sawMap, sawMetadata := false, false
	err := s.object(func(key string) error {
		switch key {
		case "weight_map":
			if sawMap {
				return s.fail("weight_map is there twice")
			}
			sawMap = true
			return x.readMap(&s)
		case "metadata":
			if sawMetadata {
				return s.fail("metadata is there twice")
			}
			sawMetadata = true
			return x.readMetadata(&s)
		}
		return s.skip()
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && !sawMap {
		err = fmt.Errorf("no weight_map: %w", ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	x.sortShards()
	return x, nil
}

func (x *Index) readMap(s *scanner) error {
	shards := make(map[string]int)
	x.byName = make(map[string]int)
	return s.object(func(name string) error {
		if _, twice := x.byName[name]; twice {
			return fmt.Errorf("tensor %s is listed twice: %w", quote(name), ErrInvalid)
		}
		if s.peek() != '"' {
			return s.fail("the shard of tensor " + quote(name) + " is not a string")
		}
		file, err := s.str()
		if err != nil {
			return err
		}
		shard, known := shards[file]
		if !known {
			if err := checkBaseName(file); err != nil {
				return fmt.Errorf("the shard of tensor %s: %w", quote(name), err)
			}
			shard = len(x.Shards)
			shards[file] = shard
			x.Shards = append(x.Shards, file)
		}
		x.byName[name] = len(x.Tensors)
		x.Tensors = append(x.Tensors, Placement{name, shard})
		return nil
	})
}

// readMetadata looks for total_size, which some writers spell as a float. Metadata of another kind than an object says
// nothing.
func (x *Index) readMetadata(s *scanner) error {
	if s.peek() != '{' {
		return s.skip()
	}
	return s.object(func(key string) error {
		if key != "total_size" {
			return s.skip()
		}
		s.peek()
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		if f, err := strconv.ParseFloat(s.text[start:s.pos], 64); err == nil && f >= 0 && f < 1<<53 && f == math.Trunc(f) {
			x.TotalSize = int64(f)
		}
		return nil
	})
}

// checkBaseName refuses names that could lead out of the directory of the index on any operating system.
func checkBaseName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
	case strings.ContainsAny(name, "/\\\x00"):
	case len(name) >= 2 && name[1] == ':': // a Windows drive
	default:
		return nil
	}
	return fmt.Errorf("%s is not the name of a file beside the index: %w", quote(name), ErrInvalid)
}

// sortShards sorts Shards and renumbers the placements.
func (x *Index) sortShards() {
	order := make([]int, len(x.Shards))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x.Shards[a], x.Shards[b]) })
	sorted, place := make([]string, len(order)), make([]int, len(order))
	for at, from := range order {
		sorted[at], place[from] = x.Shards[from], at
	}
	x.Shards = sorted
	for i := range x.Tensors {
		x.Tensors[i].Shard = place[x.Tensors[i].Shard]
	}
}

// Shard returns the file name of the shard that holds the tensor called name, and false where the index has none.
func (x *Index) Shard(name string) (string, bool) {
	i, ok := x.byName[name]
	if !ok {
		return "", false
	}
	return x.Shards[x.Tensors[i].Shard], true
}

// ProblemKind is what may not agree between an index and its shards.
type ProblemKind int

// The kinds of Problem.
const (
	ShardMissing  ProblemKind = iota // the index lists the shard, and there is no header of it
	ShardExtra                       // there is a header of the shard, and the index does not list it
	TensorMissing                    // the index puts the tensor into the shard, and it is not there
	TensorExtra                      // the tensor is in the shard, and the index does not put it there
)

// Problem is one disagreement. Tensor is empty where it is about a whole shard.
type Problem struct {
	Kind          ProblemKind
	Shard, Tensor string
}

func (p Problem) String() string {
	switch p.Kind {
	case ShardMissing:
		return fmt.Sprintf("shard %s is listed in the index and missing", quote(p.Shard))
	case ShardExtra:
		return fmt.Sprintf("shard %s is not listed in the index", quote(p.Shard))
	case TensorMissing:
		return fmt.Sprintf("tensor %s should be in shard %s and is not", quote(p.Tensor), quote(p.Shard))
	}
	return fmt.Sprintf("tensor %s is in shard %s, where the index does not put it", quote(p.Tensor), quote(p.Shard))
}

// Check compares an index with the headers of its shards, by file name. It returns what does not agree: whole shards
// in the order of their names, then missing tensors in the order of the index, then extra ones in the order of their data. The
// tensors of a shard that is missing are not listed one by one.
func Check(x *Index, headers map[string]*Header) []Problem {
	var problems []Problem
	names := slices.Clone(x.Shards)
	for name := range headers {
		if _, listed := slices.BinarySearch(x.Shards, name); !listed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var extra []Problem
	found := make([]bool, len(x.Tensors))
	for _, shard := range names {
		at, listed := slices.BinarySearch(x.Shards, shard)
		h := headers[shard]
		switch {
		case h == nil:
			problems = append(problems, Problem{Kind: ShardMissing, Shard: shard})
			continue
		case !listed:
			problems = append(problems, Problem{Kind: ShardExtra, Shard: shard})
			continue
		}
		for i := range h.Tensors {
			name := h.Tensors[i].Name
			if j, ok := x.byName[name]; ok && x.Tensors[j].Shard == at {
				found[j] = true
			} else {
				extra = append(extra, Problem{Kind: TensorExtra, Shard: shard, Tensor: name})
			}
		}
	}
	for i, p := range x.Tensors {
		if shard := x.Shards[p.Shard]; !found[i] && headers[shard] != nil {
			problems = append(problems, Problem{Kind: TensorMissing, Shard: shard, Tensor: p.Tensor})
		}
	}
	return append(problems, extra...)
}

// ProblemsError makes one error of problems, nil where there are none. It names the first few.
func ProblemsError(problems []Problem) error {
	const most = 3
	var errs []error
	for _, p := range problems[:min(len(problems), most)] {
		errs = append(errs, errors.New(p.String()))
	}
	switch {
	case len(problems) == 0:
		return nil
	case len(problems) > most:
		errs = append(errs, fmt.Errorf("and %d more", len(problems)-most))
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(errs...))
}
