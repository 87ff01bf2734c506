package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/wcodec/wcodec"
)

// archive is a packed file, or all packed files of a directory, for the verbs that look inside.
type archive struct {
	path    string
	readers []*wcodec.Reader
	files   []string         // of a directory: the packed file of each reader, below it
	copied  []wcodec.DirFile // of a directory: what it holds as it is
	dir     *wcodec.Dir
}

func openArchive(ctx context.Context, in string) (*archive, error) {
	k, err := kindOf(in)
	if err != nil {
		return nil, err
	}
	ar := &archive{path: in}
	if k != kindDir {
		r, err := openPacked(ctx, in)
		if err != nil {
			return nil, err
		}
		ar.readers = []*wcodec.Reader{r}
		return ar, nil
	}
	if ar.dir, err = openDir(in); err != nil {
		return nil, err
	}
	for _, f := range ar.dir.Files() {
		if f.How == wcodec.HowCopied {
			ar.copied = append(ar.copied, f)
		}
		if f.How != wcodec.HowPacked {
			continue
		}
		r, err := wcodec.Open(filepath.Join(in, filepath.FromSlash(f.Stored)))
		if err != nil {
			ar.Close()
			return nil, err
		}
		ar.readers, ar.files = append(ar.readers, r), append(ar.files, f.Stored)
	}
	return ar, nil
}

func (ar *archive) Close() {
	for _, r := range ar.readers {
		r.Close()
	}
}

// tensors are those of all files in the order of their data.
func (ar *archive) tensors() []*wcodec.Tensor {
	var all []*wcodec.Tensor
	for _, r := range ar.readers {
		all = append(all, r.Tensors()...)
	}
	return all
}

// find returns the tensor called name.
func (ar *archive) find(name string) (*wcodec.Tensor, error) {
	for _, r := range ar.readers {
		t, err := r.Tensor(name)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, wcodec.ErrNotFound) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: tensor %q: %w%s", ar.path, name, wcodec.ErrNotFound, ar.nearest(name))
}

// nearest suggests a name that ends like the one that is not there.
func (ar *archive) nearest(name string) string {
	for _, t := range ar.tensors() {
		if strings.EqualFold(t.Name(), name) || strings.HasSuffix(t.Name(), "."+name) {
			return fmt.Sprintf("; is %q meant?", t.Name())
		}
	}
	return ""
}

// match returns the tensors that the names mean, each once, in the order of their data. A name with *, ? or [ that no
// tensor has is a pattern, in which * does not stop at dots.
func (ar *archive) match(names []string) ([]*wcodec.Tensor, error) {
	chosen := make(map[*wcodec.Tensor]bool)
	all := ar.tensors()
	for _, name := range names {
		t, err := ar.find(name)
		if err == nil {
			chosen[t] = true
			continue
		}
		if !errors.Is(err, wcodec.ErrNotFound) || !strings.ContainsAny(name, "*?[") {
			return nil, err
		}
		if _, perr := path.Match(name, ""); perr != nil {
			return nil, usagef("%q is not a pattern: %v", name, perr)
		}
		found := false
		for _, t := range all {
			// A slash would stop a star of path.Match.
			if ok, _ := path.Match(strings.ReplaceAll(name, "/", "\x00"), strings.ReplaceAll(t.Name(), "/", "\x00")); ok {
				chosen[t], found = true, true
			}
		}
		if !found {
			return nil, err
		}
	}
	var list []*wcodec.Tensor
	for _, t := range all {
		if chosen[t] {
			list = append(list, t)
		}
	}
	return list, nil
}
