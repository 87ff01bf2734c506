// Package format knows the bytes of a .wcodec file around its coded data: header, member headers, segment metadata,
// chunk index, directory and footer (docs/FORMAT.md). It parses them, strictly, and appends them, in one canonical
// form. It knows no code, so chunks and tables are opaque bytes to it, no safetensors, and of the world only the
// io.ReaderAt or io.Writer that it is handed.
package format

import (
	"errors"
	"io/fs"
	"strings"
	"unicode"
)

// Version of the format that this package writes, and the only one that it reads: while Major is 0 every minor version
// may differ from every other.
const (
	Major = 0
	Minor = 1
)

// Sizes and limits of the format. A reader refuses what lies beyond them, before it allocates for it.
const (
	HeaderSize     = 64
	FooterSize     = 64
	IndexEntrySize = 24

	MaxDirectory    = 256 << 20       // bytes of the directory in its raw form
	MaxMemberHeader = 100_000_000 + 8 // bytes of the header of a safetensors file, its length field included
	MaxTable        = 1 << 20         // bytes of the table of a segment
	MaxChunks       = 1 << 16         // chunks of a segment
	MaxTensors      = 1 << 21         // tensors of a file
	MaxMembers      = 1 << 16         // members of a file
	MaxMemberName   = 4096            // bytes of the name of a member

	// ChunkAlign is what every section, the data of a segment, each of its chunks and the directory start at a multiple of.
	ChunkAlign = 16
)

// Errors of this package; every error of a reader wraps one of them with the fact that did not hold, unless it comes
// from the io.ReaderAt.
var (
	// ErrNotWcodec says that the file does not begin as a .wcodec file does.
	ErrNotWcodec = errors.New("not a .wcodec file")
	// ErrCorrupt says that no writer of this version can have written these bytes.
	ErrCorrupt = errors.New("corrupt file")
	// ErrUnsupported says that the file is of another version or needs a feature that this package does not know.
	ErrUnsupported = errors.New("unsupported file")
	// ErrLimit says that what a writer was given does not fit the limits of the format.
	ErrLimit = errors.New("beyond the limits of the format")
)

// Align is the alignment of the segments of a tensor of so many bytes. It depends on the size alone, so that equal
// tensors are stored as equal bytes; large tensors start on pages, and small ones do not pay for that.
func Align(tensorBytes uint64) uint64 {
	switch {
	case tensorBytes >= 1<<20:
		return 4096
	case tensorBytes >= 16<<10:
		return 128
	}
	return ChunkAlign
}

// alignUp rounds n, which is below 2^63, up to a multiple of align, a power of two.
func alignUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// ValidName reports whether name may be the name of a member: a relative path of UTF-8 with forward slashes that stays
// inside its folder on every system and can be printed.
func ValidName(name string) bool {
	return len(name) <= MaxMemberName && name != "." && fs.ValidPath(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || unicode.IsControl(r) })
}
