//go:build !amd64 || noasm

package rans

// Route names the instructions that the kernels use on this machine: none but Go's.
func (code) Route() string { return "generic" }
