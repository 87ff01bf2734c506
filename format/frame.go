package format

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// A member header and the directory are stored as one zstd frame where that is shorter, else as they are. What a frame
// declares is capped by its own length, so that a small file cannot make a reader allocate much; a writer stores as it
// is what would compress beyond that.
const (
	maxExpansion  = 64
	freeExpansion = 64 << 10
	window        = 1 << 20 // of the frames written
	maxWindow     = 8 << 20 // of the frames read; what every zstd decoder is asked to support
)

// checkStored checks the declared lengths of a part before anything is allocated for it.
func checkStored(what string, stored, raw, most uint64, compressed bool) error {
	switch {
	case raw > most:
		return fmt.Errorf("%s declares %d bytes, the limit is %d: %w", what, raw, most, ErrCorrupt)
	case !compressed && stored != raw:
		return fmt.Errorf("%s declares %d bytes and stores %d: %w", what, raw, stored, ErrCorrupt)
	case compressed && (stored >= raw || !worthFrame(stored, raw)):
		return fmt.Errorf("%s declares %d bytes in a frame of %d: %w", what, raw, stored, ErrCorrupt)
	}
	return nil
}

// worthFrame reports whether raw bytes that compress to so few may be stored as a frame.
func worthFrame(stored, raw uint64) bool {
	return stored < raw && raw <= maxExpansion*stored+freeExpansion
}

// pack returns what to store for raw, and whether that is a frame. The result depends on raw alone.
func pack(raw []byte) (stored []byte, compressed bool, err error) {
	// One thread, because threads split the input and so change the bytes; a small window, because readers allocate it;
	// one segment where that is no larger, because only so does every frame declare its content size.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(window),
		zstd.WithSingleSegment(len(raw) <= window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, false, fmt.Errorf("zstd: %w", err)
	}
	defer enc.Close()
	if b := enc.EncodeAll(raw, nil); worthFrame(uint64(len(b)), uint64(len(raw))) {
		return b, true, nil
	}
	return raw, false, nil
}

// unpack reverses pack. The lengths have been checked by checkStored. The result may be stored itself.
func unpack(what string, stored []byte, raw uint64, compressed bool) ([]byte, error) {
	if !compressed {
		return stored, nil
	}
	var h zstd.Header
	if err := h.Decode(stored); err != nil || h.Skippable || !h.HasFCS || h.FrameContentSize != raw || h.DictionaryID != 0 {
		return nil, fmt.Errorf("%s is not a zstd frame that declares %d bytes: %w", what, raw, ErrCorrupt)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(max(raw, maxWindow)))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer dec.Close()
	b, err := dec.DecodeAll(stored, make([]byte, 0, raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %v: %w", what, err, ErrCorrupt)
	}
	if uint64(len(b)) != raw {
		return nil, fmt.Errorf("%s declares %d bytes and has %d: %w", what, raw, len(b), ErrCorrupt)
	}
	return b, nil
}
