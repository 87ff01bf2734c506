package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

func (a *app) devicesCmd() *cobra.Command {
	return ignores(&cobra.Command{
		Use:     "devices [flags]",
		Short:   "Show what would compute, and why not the rest",
		Example: "  wcodec devices --json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.devices() },
	}, outputFlags, packFlags)
}

// device is one place to compute.
type device struct {
	Kind    string `json:"kind"` // cpu or cuda
	Name    string `json:"name"`
	Cores   int    `json:"cores,omitempty"`   // logical ones that this process may use
	Threads int    `json:"threads,omitempty"` // that would be used
	Route   string `json:"route,omitempty"`   // instructions of the codes
	Used    bool   `json:"used"`
	Why     string `json:"why,omitempty"` // not used
}

type devicesResult struct {
	head
	Devices []device `json:"devices"`
}

// noGPU is why no GPU is used, whatever there is.
const noGPU = "this version of wcodec decodes and encodes on the CPU only"

func (a *app) devices() error {
	a.stdout = false
	res := &devicesResult{Devices: append([]device{a.cpu()}, gpus()...)}
	a.result = res
	if a.json {
		return nil
	}
	for _, d := range res.Devices {
		use := "used"
		if !d.Used {
			use = "not used: " + d.Why
		}
		fmt.Printf("%-5s %s\n      %s\n", d.Kind, d.describe(), use)
	}
	return nil
}

func (d device) describe() string {
	if d.Kind != "cpu" {
		return d.Name
	}
	return fmt.Sprintf("%s, %s, %s, %s", d.Name, plural(d.Cores, "core"), plural(d.Threads, "thread"), d.Route)
}

func (a *app) cpu() device {
	threads := a.workers
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return device{Kind: "cpu", Name: cpuName(), Cores: runtime.NumCPU(), Threads: threads, Route: wcodec.CPURoute(), Used: true}
}

// cpuName is what the system calls its processor.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// gpus says what there is of NVIDIA's: the driver's devices, or what is missing.
func gpus() []device {
	none := func(why string) []device {
		return []device{{Kind: "cuda", Name: "no NVIDIA device", Why: why + "; and " + noGPU}}
	}
	lib := findDriverLibrary()
	infos, _ := filepath.Glob("/proc/driver/nvidia/gpus/*/information")
	nodes, _ := filepath.Glob("/dev/nvidia[0-9]*")
	switch {
	case runtime.GOOS == "darwin":
		return none("NVIDIA has no driver for this system")
	case lib == "":
		return none("the CUDA driver library (" + driverLibrary() + ") was not found")
	case runtime.GOOS == "linux" && len(infos) == 0 && len(nodes) == 0:
		return none("the driver library is there (" + lib + "), but no device is: /proc/driver/nvidia and /dev/nvidia* are missing")
	}
	var list []device
	for i := range max(len(infos), len(nodes), 1) {
		d := device{Kind: "cuda", Name: fmt.Sprintf("NVIDIA device %d", i), Why: noGPU}
		if i < len(infos) {
			if model := gpuModel(infos[i]); model != "" {
				d.Name = model
			}
		}
		list = append(list, d)
	}
	return list
}

func gpuModel(info string) string {
	b, err := os.ReadFile(info)
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == "Model" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func driverLibrary() string {
	if runtime.GOOS == "windows" {
		return "nvcuda.dll"
	}
	return "libcuda.so.1"
}

// findDriverLibrary returns the path of the CUDA driver library, or "". It looks and does not load.
func findDriverLibrary() string {
	dirs := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	if runtime.GOOS == "windows" {
		dirs = []string{filepath.Join(os.Getenv("SystemRoot"), "System32")}
	} else {
		dirs = append(dirs, "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
			"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat")
	}
	for _, d := range dirs {
		p := filepath.Join(d, driverLibrary())
		if _, err := os.Stat(p); d != "" && err == nil {
			return p
		}
	}
	return ""
}

// useDevice holds --device to what this version has: an explicit GPU is an error, auto says once what it took.
func (a *app) useDevice() error {
	switch a.device {
	case "cpu":
		return nil
	case "auto":
		a.note("computing on the CPU: %s (no GPU: %s)", a.cpu().describe(), noGPU)
		return nil
	}
	found := gpus()[0]
	return hinted{
		fmt.Errorf("--device %s: cannot start: %s (%s)", a.device, noGPU, found.Name),
		"--device auto takes what there is",
	}
}
