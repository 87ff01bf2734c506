// Package wcodec is a lossless codec for neural-network weights. Checkpoints in the safetensors format go in, come out
// about a third smaller as .wcodec files, and come back bit for bit; see docs/FORMAT.md for the bytes.
//
// [CompressFile] and [DecompressFile] do whole files, [Compress] works on streams, and [Open] gives a [Reader] that
// lists tensors and reads them, or slices of them, alone. All of it is safe for concurrent use, takes a context, and
// logs nothing.
package wcodec

import (
	"errors"
	"fmt"
	"time"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/codec/rans"
	"github.com/wcodec/wcodec/codec/raw"
	"github.com/wcodec/wcodec/codec/zstd"
	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/sched"
	"github.com/wcodec/wcodec/store"
)

// Errors to compare with [errors.Is]. What is returned wraps them and names the file, the tensor and the fact.
var (
	// ErrCorrupt says that an input breaks the rules of its format.
	ErrCorrupt = errors.New("corrupt input")
	// ErrNotWcodec says that an input does not even begin as a .wcodec file does. An error that wraps it wraps ErrCorrupt too.
	ErrNotWcodec = format.ErrNotWcodec
	// ErrUnsupported says that an input needs a version, a feature or a code that this package does not have.
	ErrUnsupported = errors.New("unsupported version or feature")
	// ErrExists says that an output is there already.
	ErrExists = store.ErrExists
	// ErrNotFound says that no tensor has the name asked for.
	ErrNotFound = errors.New("no such tensor")
	// ErrMismatch says that decoded bytes differ from the original they were compared with.
	ErrMismatch = errors.New("differs from the original")
	// ErrLink says that a directory holds a symbolic link; Options.FollowLinks reads through it.
	ErrLink = errors.New("symbolic link")
	// ErrTrailing says that a safetensors file has bytes after its last tensor; Options.KeepTrailing keeps them.
	ErrTrailing = errors.New("bytes after the last tensor")
)

// Level trades speed for size.
type Level int

// Levels. The zero value is LevelDefault.
const (
	LevelDefault Level = iota
	LevelFast
	LevelDense
)

// ParseLevel reads "default", "fast" or "dense".
func ParseLevel(s string) (Level, error) {
	switch s {
	case "default", "":
		return LevelDefault, nil
	case "fast":
		return LevelFast, nil
	case "dense":
		return LevelDense, nil
	}
	return 0, fmt.Errorf("level %q is none of fast, default, dense", s)
}

// Options tune an operation. The zero value is the default; fields that do not concern an operation are ignored.
type Options struct {
	Workers      int            // goroutines that compute; 0: GOMAXPROCS
	Level        Level          // compress
	Codec        string         // compress: "" or "auto", or the name of one code
	Blob         bool           // compress: take every input as plain bytes, never as safetensors
	KeepTrailing bool           // compress: keep bytes after the last tensor instead of refusing the file
	FollowLinks  bool           // directories: read through symbolic links, as model caches have them
	Overwrite    bool           // files and directories: replace an output that exists
	Progress     func(Progress) // called from one goroutine, about ten times a second and once at the end
}

// Progress is how far an operation is.
type Progress struct {
	Done   int64 // plain bytes done
	Total  int64 // plain bytes in all, or -1 where the input is a stream
	Stored int64 // stored bytes that belong to Done
}

// Stats says what an operation did.
type Stats struct {
	Members     int                  `json:"members"`
	Tensors     int                  `json:"tensors"`
	PlainBytes  int64                `json:"plain_bytes"`
	StoredBytes int64                `json:"stored_bytes"`
	Chunks      int64                `json:"chunks"`
	RawChunks   int64                `json:"raw_chunks"` // chunks stored as they were because their code did not pay
	Codes       map[string]CodeStats `json:"codes"`
	Wall        time.Duration        `json:"wall_ns"`
	Sched       sched.Stats          `json:"sched"`
}

// CodeStats counts what one code was used for.
type CodeStats struct {
	Segments    int   `json:"segments"`
	PlainBytes  int64 `json:"plain_bytes"`
	StoredBytes int64 `json:"stored_bytes"`
}

func (s *Stats) code(name string, plain, stored int64) {
	if s.Codes == nil {
		s.Codes = make(map[string]CodeStats)
	}
	c := s.Codes[name]
	c.Segments++
	c.PlainBytes += plain
	c.StoredBytes += stored
	s.Codes[name] = c
}

// Codecs returns the names that Options.Codec takes, "auto" first.
func Codecs() []string {
	names := []string{"auto"}
	for _, c := range registry.All() {
		names = append(names, c.Name())
	}
	return names
}

// registry holds the codes of this build, the cheaper to decode first.
var registry = codec.NewRegistry(raw.New(), rans.New(), zstd.New())
