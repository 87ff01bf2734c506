package wcodec

import (
	"sync"
	"sync/atomic"
	"time"
)

// meter counts plain and stored bytes and reports them from one goroutine.
type meter struct {
	done, stored atomic.Int64
	total        int64
	report       func(Progress)
	quit         chan struct{}
	wait         sync.WaitGroup
}

const progressEvery = 100 * time.Millisecond

func newMeter(report func(Progress), total int64) *meter {
	m := &meter{total: total, report: report, quit: make(chan struct{})}
	if report == nil {
		return m
	}
	m.wait.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				m.say()
			case <-m.quit:
				m.say()
				return
			}
		}
	})
	return m
}

func (m *meter) say() { m.report(Progress{m.done.Load(), m.total, m.stored.Load()}) }

func (m *meter) add(plain, stored int) {
	m.done.Add(int64(plain))
	m.stored.Add(int64(stored))
}

// stop makes the last report and waits for it.
func (m *meter) stop() {
	close(m.quit)
	m.wait.Wait()
}
