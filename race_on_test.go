//go:build race

package wcodec

const raceEnabled = true
