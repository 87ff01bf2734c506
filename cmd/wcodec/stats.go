package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wcodec/wcodec"
)

// statLines are what -v says of an operation: what each code was used for, and where the time went.
func statLines(st *wcodec.Stats) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(st.Codes)) {
		c := st.Codes[name]
		lines = append(lines, fmt.Sprintf("%s: %s, %s plain, %s stored, ratio %.3f", name, plural(c.Segments, "segment"),
			humanSize(c.PlainBytes), humanSize(c.StoredBytes), ratio(c.PlainBytes, c.StoredBytes)))
	}
	if st.Chunks > 0 {
		lines = append(lines, fmt.Sprintf("%s, %d of them raw within another code", plural(int(st.Chunks), "chunk"), st.RawChunks))
	}
	s := st.Sched
	if s.Workers > 0 {
		lines = append(lines, fmt.Sprintf("%s: computing %s, waiting %s; reading %s, writing %s", plural(s.Workers, "worker"),
			humanTime(s.Compute+s.Plan), humanTime(s.QueueWait), humanTime(s.Load), humanTime(s.Finish)))
	}
	return append(lines, "wall "+humanTime(st.Wall.Round(time.Millisecond)))
}
