package wcodec

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/store"
)

// Extract writes tensors, of one open file or of several, to w in the order given: as a safetensors file of their own,
// or with raw their bytes alone, one after the other. Only what they need is read and decoded.
func Extract(ctx context.Context, w io.Writer, tensors []*Tensor, raw bool, o Options) (Stats, error) {
	begin := time.Now()
	var stats Stats
	head, err := extractHeader(tensors, raw)
	if err != nil {
		return stats, err
	}
	stats.Members, stats.Tensors, stats.PlainBytes = 1, len(tensors), int64(len(head))
	for _, t := range tensors {
		stats.PlainBytes += t.Size()
		for i := range t.t.Segments {
			seg := &t.t.Segments[i]
			_, elems := t.t.Geometry.SegmentRange(i)
			stats.Chunks += int64(seg.Chunks)
			stats.StoredBytes += int64(seg.StoredLen())
			stats.code(codeName(seg.Code), int64(elems)*int64(t.t.Geometry.UnitSize), int64(seg.StoredLen()))
		}
	}
	if _, err := w.Write(head); err != nil {
		return stats, err
	}
	mt := newMeter(o.Progress, stats.PlainBytes)
	defer mt.stop()
	mt.add(len(head), 0)
	pool := new(bufferPool)
	d := decodeOptions{workers: o.Workers, meter: mt, weight: func(s *segment) int64 { return int64(s.byteLen()) }}
	stats.Sched, err = decodeAll(ctx, tensors, d, func(s *segment) sink { return &streamSink{s: s, w: w, pool: pool} })
	stats.Wall = time.Since(begin)
	return stats, err
}

// extractHeader is the header of a safetensors file of the tensors, whose data lie in the order given.
func extractHeader(tensors []*Tensor, raw bool) ([]byte, error) {
	if raw {
		return nil, nil
	}
	list := make([]safetensors.Tensor, len(tensors))
	for i, t := range tensors {
		list[i] = safetensors.Tensor{Name: t.t.Name, DType: t.t.DType, Shape: t.t.Shape, End: t.t.Length}
	}
	safetensors.Place(list)
	head, err := safetensors.AppendHeader(nil, list, nil)
	if err != nil {
		return nil, fmt.Errorf("the tensors do not make a safetensors file: %w", err)
	}
	return head, nil
}

// ExtractTo is Extract to the path dst, which appears whole or not at all.
func ExtractTo(ctx context.Context, dst string, tensors []*Tensor, raw bool, o Options) (Stats, error) {
	out, err := store.Create(dst, o.Overwrite)
	if err != nil {
		return Stats{}, err
	}
	defer out.Abort()
	stats, err := Extract(ctx, out, tensors, raw, o)
	if err != nil {
		return stats, err
	}
	return stats, out.Commit()
}
