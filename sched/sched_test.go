package sched

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source returns tasks whose parts take random times, and the order in which they finished.
func source(n int, each func(task int, t *Task)) (func() (*Task, error), *[]int) {
	var finished []int
	next := 0
	return func() (*Task, error) {
		if next == n {
			return nil, io.EOF
		}
		k := next
		next++
		t := &Task{
			Weight: int64(1 + k%7),
			Plan:   func(*Worker) (int, error) { return k % 5, nil },
			Part: func(_ *Worker, i int) error {
				time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
				return nil
			},
			Finish: func() error { finished = append(finished, k); return nil },
		}
		if each != nil {
			each(k, t)
		}
		return t, nil
	}, &finished
}

func TestOrderWhateverTheWorkers(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 16} {
		next, finished := source(300, nil)
		stats, err := Run(t.Context(), Config{Workers: workers, Budget: 20}, next)
		if err != nil {
			t.Fatal(err)
		}
		if len(*finished) != 300 || stats.Tasks != 300 || stats.Parts != 600 {
			t.Fatalf("%d workers: %d finished, stats %+v", workers, len(*finished), stats)
		}
		for i, k := range *finished {
			if i != k {
				t.Fatalf("%d workers: task %d finished at place %d", workers, k, i)
			}
		}
	}
}

func TestBudgetHolds(t *testing.T) {
	var inFlight, most atomic.Int64
	next, _ := source(400, func(k int, task *Task) {
		weight := task.Weight
		if k == 100 {
			weight = 1000 // heavier than the budget: runs alone
			task.Weight = weight
			task.Load = func() error {
				if inFlight.Load() != 0 {
					t.Errorf("a task beyond the budget started beside %d bytes", inFlight.Load())
				}
				inFlight.Add(weight)
				return nil
			}
		} else {
			task.Load = func() error {
				now := inFlight.Add(weight)
				for {
					m := most.Load()
					if now <= m || most.CompareAndSwap(m, now) {
						return nil
					}
				}
			}
		}
		task.Release = func() { inFlight.Add(-weight) }
	})
	if _, err := Run(t.Context(), Config{Workers: 4, Budget: 30}, next); err != nil {
		t.Fatal(err)
	}
	if most.Load() > 30 || most.Load() < 10 || inFlight.Load() != 0 {
		t.Fatalf("most in flight %d of 30, %d never released", most.Load(), inFlight.Load())
	}
}

func TestErrorsStopTheRunAndReleaseAll(t *testing.T) {
	boom := errors.New("boom")
	for _, stage := range []string{"next", "load", "plan", "part", "finish"} {
		var started, released atomic.Int64
		inner, finished := source(1000, func(k int, task *Task) {
			started.Add(1)
			task.Release = func() { released.Add(1) }
			if k != 50 {
				return
			}
			switch stage {
			case "load":
				task.Load = func() error { return boom }
			case "plan":
				task.Plan = func(*Worker) (int, error) { return 0, boom }
			case "part":
				task.Plan = nil
				task.Part = func(*Worker, int) error { return boom }
			case "finish":
				task.Finish = func() error { return boom }
			}
		})
		next := inner
		if stage == "next" {
			next = func() (*Task, error) {
				if started.Load() == 50 {
					return nil, boom
				}
				return inner()
			}
		}
		_, err := Run(t.Context(), Config{Workers: 3}, next)
		if !errors.Is(err, boom) {
			t.Fatalf("%s: error %v", stage, err)
		}
		if started.Load() != released.Load() {
			t.Fatalf("%s: %d started, %d released", stage, started.Load(), released.Load())
		}
		if len(*finished) > 50 {
			t.Fatalf("%s: %d tasks finished though task 50 failed", stage, len(*finished))
		}
	}
}

func TestCancelAtAnyMoment(t *testing.T) {
	for range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		var started, released atomic.Int64
		next, _ := source(100000, func(_ int, task *Task) {
			started.Add(1)
			task.Release = func() { released.Add(1) }
		})
		time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, cancel)
		_, err := Run(ctx, Config{Workers: 1 + rand.IntN(4), Budget: 25}, next)
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if started.Load() != released.Load() {
			t.Fatalf("%d started, %d released", started.Load(), released.Load())
		}
	}
}

func TestTasksWithoutStages(t *testing.T) {
	n := 0
	_, err := Run(t.Context(), Config{}, func() (*Task, error) {
		if n++; n > 10000 {
			return nil, io.EOF
		}
		return &Task{}, nil
	})
	if err != nil || n != 10001 {
		t.Fatal(n, err)
	}
}
