// Package tensor knows element types, shapes, and the one way in which a tensor is cut into segments, tiles and
// chunks (FORMAT section "Geometry"). It knows no code, no file and no bytes on disk.
package tensor
