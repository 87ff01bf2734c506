//go:build !linux

package main

import "errors"

func canMount() bool { return false }

func mountTmpfs(string, string) error { return errors.New("no tmpfs on this system") }

func unmount(string) {}
