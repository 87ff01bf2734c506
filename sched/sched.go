// Package sched runs the work of every verb: tasks in order, their parts in parallel, results in order, memory
// bounded. It knows neither codes nor files.
//
// A task passes four stages. Load runs on one goroutine, in order, once the task's weight fits the budget. Plan
// runs on a worker and says into how many parts the task falls. Part runs on any worker, for each part. Finish runs on
// one goroutine, in the order of the tasks. Release runs exactly once, whatever happened, as soon as a task is through.
//
// A worker never waits for another: what it starts goes to a queue without a bound of its own (the budget bounds
// it), so that no chain of full channels can stop all of them at once.
package sched

import (
	"context"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/wcodec/wcodec/codec"
)

// Task is a piece of work whose result has a place in the order, such as a segment. Nil functions are skipped.
type Task struct {
	Weight  int64 // bytes that the task holds from Load to Release
	Load    func() error
	Plan    func(w *Worker) (parts int, err error) // nil: one part
	Part    func(w *Worker, i int) error
	Finish  func() error
	Release func()

	mu      sync.Mutex
	left    int
	done    chan struct{}
	skipped bool
}

// Worker is what one goroutine of the pool owns.
type Worker struct {
	Scratch codec.Scratch
	bufs    [3][]byte
	stats   Stats
}

// Buffer returns the worker's buffer i (0 to 2) with length n; its content is arbitrary. It has codec.Slack bytes of
// capacity to spare.
func (w *Worker) Buffer(i, n int) []byte {
	if cap(w.bufs[i]) < n+codec.Slack {
		w.bufs[i] = make([]byte, n+codec.Slack)
	}
	return w.bufs[i][:n]
}

// Stats says where the time went, summed over goroutines.
type Stats struct {
	Workers   int           `json:"workers"`
	Tasks     int64         `json:"tasks"`
	Parts     int64         `json:"parts"`
	Load      time.Duration `json:"load_ns"`
	Plan      time.Duration `json:"plan_ns"`
	Compute   time.Duration `json:"compute_ns"`
	Finish    time.Duration `json:"finish_ns"`
	QueueWait time.Duration `json:"queue_wait_ns"` // workers waiting for work
}

func (s *Stats) add(t Stats) {
	s.Parts += t.Parts
	s.Plan += t.Plan
	s.Compute += t.Compute
	s.QueueWait += t.QueueWait
}

// Config bounds a run.
type Config struct {
	Workers int                      // 0: as many as GOMAXPROCS
	Budget  int64                    // most bytes of Weight in flight; a heavier task runs alone. 0: DefaultBudget
	Guard   func(func() error) error // wraps Plan and Part; nil: none
}

// DefaultBudget is the memory that tasks in flight may hold where Config.Budget is 0.
const DefaultBudget = 192 << 20

type item struct {
	t    *Task
	part int // -1: plan
}

type run struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	guard  func(func() error) error

	mu    sync.Mutex
	cond  *sync.Cond
	queue []item
	head  int
	ended bool

	budgetMu   sync.Mutex
	budgetCond *sync.Cond
	budget     int64
	inFlight   int64
}

// Run takes tasks from next until it returns io.EOF and carries each through its stages. It returns the first error,
// of next, of a stage or of ctx; tasks not yet finished then are released unfinished. When it returns, no goroutine of
// it is left.
func Run(ctx context.Context, c Config, next func() (*Task, error)) (Stats, error) {
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Budget <= 0 {
		c.Budget = DefaultBudget
	}
	if c.Guard == nil {
		c.Guard = func(f func() error) error { return f() }
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{ctx: inner, cancel: cancel, guard: c.Guard, budget: c.Budget}
	r.cond = sync.NewCond(&r.mu)
	r.budgetCond = sync.NewCond(&r.budgetMu)
	stop := context.AfterFunc(inner, func() {
		// A waiter checks the context under the lock, so the lock orders this wake-up after its check.
		r.budgetMu.Lock()
		r.budgetCond.Broadcast()
		r.budgetMu.Unlock()
	})
	defer stop()

	stats := Stats{Workers: c.Workers}
	var statsMu sync.Mutex
	var workers, sink sync.WaitGroup
	for range c.Workers {
		workers.Go(func() {
			w := new(Worker)
			r.work(w)
			statsMu.Lock()
			stats.add(w.stats)
			statsMu.Unlock()
		})
	}
	// The order channel holds tasks, not their memory, so its bound only limits how many tiny tasks are in flight.
	order := make(chan *Task, 4096)
	var finish time.Duration
	sink.Go(func() {
		for t := range order {
			<-t.done
			if r.ctx.Err() == nil && !t.skipped && t.Finish != nil {
				begin := time.Now()
				if err := t.Finish(); err != nil {
					cancel(err)
				}
				finish += time.Since(begin)
			}
			r.release(t)
		}
	})
	load, tasks := r.produce(next, order)
	close(order)
	sink.Wait()
	r.mu.Lock()
	r.ended = true
	r.cond.Broadcast()
	r.mu.Unlock()
	workers.Wait()
	stats.Load, stats.Finish, stats.Tasks = load, finish, tasks
	if inner.Err() != nil {
		return stats, context.Cause(inner)
	}
	return stats, nil
}

func (r *run) produce(next func() (*Task, error), order chan<- *Task) (load time.Duration, tasks int64) {
	for r.ctx.Err() == nil {
		t, err := next()
		if err == io.EOF { // not what wraps it: that is an input that failed, and no end of the tasks
			return load, tasks
		}
		if err != nil {
			r.cancel(err)
			return load, tasks
		}
		t.done = make(chan struct{})
		if !r.acquire(t.Weight) {
			if t.Release != nil {
				t.Release()
			}
			return load, tasks
		}
		if t.Load != nil {
			begin := time.Now()
			err = r.guard(t.Load)
			load += time.Since(begin)
		}
		if err != nil {
			r.cancel(err)
			r.release(t)
			return load, tasks
		}
		tasks++
		order <- t // before the queue: the sink drains order whatever the workers do
		if t.Plan == nil && t.Part == nil {
			close(t.done)
			continue
		}
		first := item{t, -1}
		if t.Plan == nil {
			t.left, first.part = 1, 0
		}
		r.push(first)
	}
	return load, tasks
}

// acquire waits until weight fits the budget, or nothing else is in flight. It reports false once the run is cancelled.
func (r *run) acquire(weight int64) bool {
	r.budgetMu.Lock()
	defer r.budgetMu.Unlock()
	for r.inFlight > 0 && r.inFlight+weight > r.budget && r.ctx.Err() == nil {
		r.budgetCond.Wait()
	}
	if r.ctx.Err() != nil {
		return false
	}
	r.inFlight += weight
	return true
}

func (r *run) release(t *Task) {
	if t.Release != nil {
		t.Release()
	}
	r.budgetMu.Lock()
	r.inFlight -= t.Weight
	r.budgetCond.Broadcast()
	r.budgetMu.Unlock()
}

func (r *run) push(items ...item) {
	r.mu.Lock()
	if r.head > len(r.queue)/2 {
		n := copy(r.queue, r.queue[r.head:])
		clear(r.queue[n:])
		r.queue, r.head = r.queue[:n], 0
	}
	r.queue = append(r.queue, items...)
	r.mu.Unlock()
	if len(items) == 1 {
		r.cond.Signal()
	} else {
		r.cond.Broadcast()
	}
}

func (r *run) pop(w *Worker) (item, bool) {
	begin := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.head == len(r.queue) && !r.ended {
		r.cond.Wait()
	}
	w.stats.QueueWait += time.Since(begin)
	if r.head == len(r.queue) {
		return item{}, false
	}
	it := r.queue[r.head]
	r.queue[r.head] = item{}
	r.head++
	if r.head == len(r.queue) {
		r.queue, r.head = r.queue[:0], 0
	}
	return it, true
}

func (r *run) work(w *Worker) {
	for {
		it, ok := r.pop(w)
		if !ok {
			return
		}
		if it.part < 0 {
			r.plan(w, it.t)
		} else {
			r.part(w, it.t, it.part)
		}
	}
}

func (r *run) plan(w *Worker, t *Task) {
	parts := 0
	begin := time.Now()
	err := r.ctx.Err()
	if err == nil {
		err = r.guard(func() (err error) {
			parts, err = t.Plan(w)
			return err
		})
	}
	w.stats.Plan += time.Since(begin)
	if err != nil || parts == 0 {
		if err != nil {
			t.skipped = true
			r.cancel(err)
		}
		close(t.done)
		return
	}
	t.left = parts
	items := make([]item, parts)
	for i := range items {
		items[i] = item{t, i}
	}
	r.push(items...)
}

func (r *run) part(w *Worker, t *Task, i int) {
	begin := time.Now()
	err := r.ctx.Err()
	if err == nil {
		err = r.guard(func() error { return t.Part(w, i) })
	}
	w.stats.Compute += time.Since(begin)
	w.stats.Parts++
	if err != nil {
		r.cancel(err)
	}
	t.mu.Lock()
	t.left--
	t.skipped = t.skipped || err != nil
	last := t.left == 0
	t.mu.Unlock()
	if last {
		close(t.done)
	}
}
