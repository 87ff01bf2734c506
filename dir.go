package wcodec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/store"
)

// IndexName is the file that makes a directory of packed shards a packed checkpoint. It is written last, so a directory
// that has one is complete. It is JSON:
//
//	{
//	  "metadata":   {"format": "wcodec", "version": 1, "total_size": plain bytes of all files},
//	  "files":      [{"name", "how": "packed"|"copied"|"directory", "size", "stored", "stored_size", "sha256"}],
//	  "weight_map": {tensor: packed file that has it}
//	}
//
// Files are sorted by name, which is the original path below the directory, with forward slashes; stored and stored_size are those of what stands
// for a packed file; sha256 is given for copied files, which have no checksums of their own; an empty directory has its name alone.
const IndexName = "model.wcodec.index.json"

// packedExt is what the name of a packed file ends in.
const packedExt = ".wcodec"

const (
	dirIndexVersion = 1
	maxDirIndex     = 256 << 20 // bytes of an index that are read
	maxShardIndex   = 128 << 20 // bytes of a safetensors shard index that are read
	maxDirFiles     = 1 << 20   // files of a directory
)

// How a file of a checkpoint directory travels.
const (
	HowPacked = "packed"    // as a .wcodec file
	HowCopied = "copied"    // as it is
	HowDir    = "directory" // an empty directory
)

// DirFile is one file of a checkpoint directory.
type DirFile struct {
	Name       string `json:"name"` // original path below the directory, with forward slashes
	How        string `json:"how"`  // HowPacked, HowCopied or HowDir
	Size       int64  `json:"size"` // of the original file in bytes
	Stored     string `json:"stored,omitempty"`
	StoredSize int64  `json:"stored_size,omitempty"`
	SHA256     string `json:"sha256,omitempty"`
}

// weightExts are the endings of files that are worth packing. Everything else in a checkpoint directory is small and is
// read by programs that expect it as it is.
var weightExts = []string{".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".onnx", ".h5", ".msgpack", ".npy", ".npz"}

// ScanDir returns the files below a checkpoint directory, sorted by name, and how each is to travel. It refuses what is
// neither a regular file nor a directory; symbolic links too, unless Options.FollowLinks. Every shard index among the
// files must be sound, and the shards it names must be there. Temporary files of a killed run are left out.
func ScanDir(src string, o Options) ([]DirFile, error) {
	var files []DirFile
	err := filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil || rel == "." {
			return err
		}
		f, err := scanFile(p, filepath.ToSlash(rel), d, o)
		if f == nil || err != nil || store.IsTemp(d.Name()) {
			return err
		}
		if len(files) == maxDirFiles {
			return fmt.Errorf("%s: more than %d files", src, maxDirFiles)
		}
		files = append(files, *f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b DirFile) int { return strings.Compare(a.Name, b.Name) })
	return files, checkScan(src, files)
}

// scanFile says how one entry travels; nil for a directory that is not empty.
func scanFile(p, name string, d fs.DirEntry, o Options) (*DirFile, error) {
	if !format.ValidName(name) {
		return nil, fmt.Errorf("%s: a name of control characters, backslashes or broken UTF-8 cannot be kept", p)
	}
	if d.IsDir() {
		entries, err := os.ReadDir(p)
		if err != nil || len(entries) > 0 {
			return nil, err
		}
		return &DirFile{Name: name, How: HowDir}, nil
	}
	st, err := d.Info()
	if err != nil {
		return nil, err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		if !o.FollowLinks {
			return nil, join(ErrLink, fmt.Errorf("%s: is a symbolic link, which could lead anywhere", p))
		}
		if st, err = os.Stat(p); err != nil {
			return nil, err
		}
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is neither a regular file nor a directory", p)
	}
	f := &DirFile{Name: name, How: HowCopied, Size: st.Size()}
	if slices.Contains(weightExts, strings.ToLower(path.Ext(name))) {
		f.How, f.Stored = HowPacked, name+packedExt
	}
	return f, nil
}

// checkScan looks for names that would collide in the packed directory, and at the shard indexes.
func checkScan(src string, files []DirFile) error {
	how := make(map[string]string, len(files))
	for _, f := range files {
		how[f.Name] = f.How
	}
	for _, f := range files {
		p := filepath.Join(src, filepath.FromSlash(f.Name))
		if path.Base(f.Name) == IndexName {
			return fmt.Errorf("%s: the directory is packed already", p)
		}
		if f.How == HowPacked && how[f.Stored] != "" {
			return fmt.Errorf("%s: stands beside its own packed file %s; move one of them away", p, path.Base(f.Stored))
		}
		if !strings.HasSuffix(f.Name, ".safetensors.index.json") || f.How != HowCopied {
			continue
		}
		b, err := readSmall(p, maxShardIndex)
		if err != nil {
			return err
		}
		index, err := safetensors.ParseIndex(b)
		if err != nil {
			return fmt.Errorf("%s: %w", p, classify(err))
		}
		for _, shard := range index.Shards {
			if h := how[path.Join(path.Dir(f.Name), shard)]; h != HowPacked && h != HowCopied {
				return fmt.Errorf("%s: names the shard %q, which is not there: %w", p, shard, ErrCorrupt)
			}
		}
	}
	return nil
}

// readSmall reads a file of at most most bytes.
func readSmall(p string, most int64) ([]byte, error) {
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: is larger than the %d bytes that are read of such a file: %w", p, most, ErrCorrupt)
	}
	return b, err
}

// dirIndex is the content of IndexName.
type dirIndex struct {
	Metadata struct {
		Format    string `json:"format"`
		Version   int    `json:"version"`
		TotalSize int64  `json:"total_size"`
	} `json:"metadata"`
	Files     []DirFile         `json:"files"`
	WeightMap map[string]string `json:"weight_map"`
}

// encode gives the index as it is written. It depends on the files alone.
func (x *dirIndex) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(x)
	return b.Bytes(), err
}

// Dir is a packed checkpoint directory, known by its index.
type Dir struct {
	path  string
	index dirIndex
}

// OpenDir reads the index of the packed checkpoint directory at path and holds it to its rules: names that stay below
// the directory, each once. It reads no other file. Without an index the error wraps fs.ErrNotExist.
func OpenDir(path string) (*Dir, error) {
	b, err := readSmall(filepath.Join(path, IndexName), maxDirIndex)
	if err != nil {
		return nil, err
	}
	return parseDir(path, b)
}

// parseDir is OpenDir for an index that is read already.
func parseDir(path string, b []byte) (*Dir, error) {
	d := &Dir{path: path}
	p := filepath.Join(path, IndexName)
	if err := json.Unmarshal(b, &d.index); err != nil {
		return nil, fmt.Errorf("%s: %w", p, join(ErrCorrupt, err))
	}
	m := d.index.Metadata
	switch {
	case m.Format != "wcodec":
		return nil, fmt.Errorf("%s: metadata.format is %q, want \"wcodec\": %w", p, m.Format, ErrCorrupt)
	case m.Version != dirIndexVersion:
		return nil, fmt.Errorf("%s: version %d, this library reads %d: %w", p, m.Version, dirIndexVersion, ErrUnsupported)
	case len(d.index.Files) > maxDirFiles:
		return nil, fmt.Errorf("%s: %d files, more than %d: %w", p, len(d.index.Files), maxDirFiles, ErrCorrupt)
	}
	seen := make(map[string]bool)
	for i := range d.index.Files {
		f := &d.index.Files[i]
		if err := f.check(seen); err != nil {
			return nil, fmt.Errorf("%s: %w", p, join(ErrCorrupt, err))
		}
		if i > 0 && f.Name <= d.index.Files[i-1].Name {
			return nil, fmt.Errorf("%s: file %q is out of order: %w", p, f.Name, ErrCorrupt)
		}
	}
	for tensor, file := range d.index.WeightMap {
		if !seen[file] || !strings.HasSuffix(file, packedExt) {
			return nil, fmt.Errorf("%s: tensor %q is said to be in %q, which is no packed file of the directory: %w", p, tensor, file, ErrCorrupt)
		}
	}
	return d, nil
}

// check holds one file of an index to its rules; seen has the names and stored names so far.
func (f *DirFile) check(seen map[string]bool) error {
	if !format.ValidName(f.Name) || path.Base(f.Name) == IndexName {
		return fmt.Errorf("file name %q is not allowed", f.Name)
	}
	if f.Size < 0 || f.StoredSize < 0 {
		return fmt.Errorf("file %q has a negative size", f.Name)
	}
	names := []string{f.Name}
	switch f.How {
	case HowPacked:
		if f.Stored != f.Name+packedExt {
			return fmt.Errorf("file %q is said to be stored as %q", f.Name, f.Stored)
		}
		names = append(names, f.Stored)
	case HowCopied:
		if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 {
			return fmt.Errorf("file %q: sha256 %q is not one", f.Name, f.SHA256)
		}
	case HowDir:
	default:
		return fmt.Errorf("file %q travels in an unknown way, %q", f.Name, f.How)
	}
	for _, n := range names {
		if seen[n] {
			return fmt.Errorf("file %q is there twice", n)
		}
		seen[n] = true
	}
	return nil
}

// Files returns what the directory holds, sorted by name; the caller must not change it.
func (d *Dir) Files() []DirFile { return d.index.Files }

// WeightMap says which packed file has a tensor, by its path below the directory; the caller must not change it.
func (d *Dir) WeightMap() map[string]string { return d.index.WeightMap }

// Size is the size of all original files in bytes.
func (d *Dir) Size() int64 { return totalSize(d.index.Files) }

func totalSize(files []DirFile) int64 {
	n := int64(0)
	for _, f := range files {
		n += f.Size
	}
	return n
}

// locate returns the path of what stands for f, after checking that it is a regular file below the directory and not
// a link out of it.
func (d *Dir) locate(f *DirFile) (string, error) {
	name := f.Name
	if f.How == HowPacked {
		name = f.Stored
	}
	p := filepath.Join(d.path, filepath.FromSlash(name))
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	st, err := root.Lstat(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: the index names it, but it is not there: %w", p, join(ErrCorrupt, err))
	case err != nil:
		return "", fmt.Errorf("%s: %w", p, err)
	case st.Mode()&fs.ModeSymlink != 0:
		return "", join(ErrLink, fmt.Errorf("%s: is a symbolic link, which could lead anywhere", p))
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s: is not a regular file: %w", p, ErrCorrupt)
	}
	return p, nil
}
