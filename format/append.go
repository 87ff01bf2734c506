package format

import (
	"encoding/binary"

	"github.com/wcodec/wcodec/tensor"
)

// The directory in its raw form (FORMAT section "Directory"); a string is its length as a uvarint and its bytes.
//
//	directory  uvarint members, member...
//	member     u8 kind, string name, then
//	           blob:        body
//	           safetensors: header, uvarint tensors, tensor..., trailing
//	header     u8 zstd, uvarint raw length, uvarint stored length, u64 hash
//	tensor     string name, string dtype, uvarint rank, uvarint dimension..., body
//	trailing   body; of the length 0, its length alone
//	body       uvarint length, geometry, segment..., 16 bytes digest
//	geometry   u8 unit size, string unit, uvarint tile rows, uvarint columns (where tile rows is not 0),
//	           uvarint elements of a chunk, uvarint elements of a segment
//	segment    u8 code, uvarint table length, uvarint data length, u64 hash
//
// Whatever follows from something else is not stored: offsets follow from the lengths and alignments of the sections,
// which stand in the file in the order of the directory; the place of a tensor in its member from the lengths of those
// before it; the number of segments and chunks from length and geometry. So there is nothing to overlap.

func appendDirectory(dst []byte, members []Member) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(members)))
	for i := range members {
		m := &members[i]
		dst = append(dst, uint8(m.Kind))
		dst = appendString(dst, m.Name)
		if m.Kind == KindBlob {
			dst = appendBody(dst, m.Blob)
			continue
		}
		h := &m.Header
		dst = append(dst, uint8(bit(h.Zstd)))
		dst = binary.AppendUvarint(dst, h.RawLen)
		dst = binary.AppendUvarint(dst, h.StoredLen)
		dst = binary.LittleEndian.AppendUint64(dst, h.Hash)
		dst = binary.AppendUvarint(dst, uint64(len(m.Tensors)))
		for k := range m.Tensors {
			t := &m.Tensors[k]
			dst = appendString(dst, t.Name)
			dst = appendString(dst, string(t.DType))
			dst = binary.AppendUvarint(dst, uint64(len(t.Shape)))
			for _, d := range t.Shape {
				dst = binary.AppendUvarint(dst, d)
			}
			dst = appendBody(dst, t)
		}
		if m.Trailing == nil {
			dst = append(dst, 0)
		} else {
			dst = appendBody(dst, m.Trailing)
		}
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBody(dst []byte, t *Tensor) []byte {
	dst = binary.AppendUvarint(dst, t.Length)
	dst = appendGeometry(dst, &t.Geometry)
	for i := range t.Segments {
		s := &t.Segments[i]
		dst = append(dst, s.Code)
		dst = binary.AppendUvarint(dst, uint64(s.TableLen))
		dst = binary.AppendUvarint(dst, s.DataLen)
		dst = binary.LittleEndian.AppendUint64(dst, s.MetaHash)
	}
	return append(dst, t.Digest[:]...)
}

func appendGeometry(dst []byte, g *tensor.Geometry) []byte {
	dst = append(dst, uint8(g.UnitSize))
	dst = appendString(dst, string(g.Unit))
	dst = binary.AppendUvarint(dst, uint64(g.TileRows))
	if g.TileRows != 0 {
		dst = binary.AppendUvarint(dst, g.Cols)
	}
	dst = binary.AppendUvarint(dst, uint64(g.ChunkElems))
	return binary.AppendUvarint(dst, g.SegElems)
}
