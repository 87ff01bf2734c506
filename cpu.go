package wcodec

// CPURoute names the instructions that the codes use on this machine, such as "AVX-512", "AVX2" or, for portable Go,
// "generic".
func CPURoute() string {
	for _, c := range registry.All() {
		if r, ok := c.(interface{ Route() string }); ok {
			return r.Route()
		}
	}
	return "generic"
}
