//go:build go1.25

package cache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a backend that answers nothing for as long as it is let.
type silent struct{ Backend }

func (silent) Get(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) GetWithTTL(ctx context.Context, _ string) ([]byte, time.Duration, error) {
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

func (silent) Set(ctx context.Context, _ string, _ []byte, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// storing finds nothing at once, and is silent when something is to be stored.
type storing struct{ silent }

func (storing) Get(context.Context, string) ([]byte, error) { return nil, nil }

func TestABackendThatAnswersNothingIsWaitedForAsLongAsTheOptionSays(t *testing.T) {
	for _, stale := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var told []error
			numbers := newCache[int](t, silent{}, Options{
				Codec: JSON, BackendTimeout: time.Hour, Stale: stale, OnError: func(_ string, err error) { told = append(told, err) },
			})
			from, began := &source{}, time.Now()
			if got := must[int](t)(numbers.GetOrLoad(ctx, "n", from.load)); got != 1 {
				t.Errorf("%d was loaded", got)
			}
			// One look at the entry; what is loaded is stored when nobody waits any more.
			if waited := time.Since(began); waited != time.Hour {
				t.Errorf("the caller waited %v", waited)
			}
			numbers.Close()
			if waited := time.Since(began); waited != 2*time.Hour || len(told) != 2 {
				t.Errorf("after %v there were the errors %v", waited, told)
			}
			for _, err := range told {
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "BackendTimeout of 1h0m0s is over") {
					t.Errorf("%v was told", err)
				}
			}
		})
	}
}

func TestABackendThatStoresNothingHoldsNoCallerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told error
		numbers := newCache[int](t, storing{}, Options{Codec: JSON, BackendTimeout: time.Hour, OnError: func(_ string, err error) { told = err }})
		began := time.Now()
		must[int](t)(numbers.GetOrLoad(ctx, "n", (&source{}).load))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the caller waited %v", waited)
		}
		numbers.Close()
		if told == nil || !strings.Contains(told.Error(), "BackendTimeout of 1h0m0s is over") {
			t.Errorf("%v was told", told)
		}
	})
}

func TestALoaderHasTheTimeThatTheOptionSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		numbers := newCache[int](t, storing{}, Options{Codec: JSON, LoadTimeout: time.Hour})
		began := time.Now()
		_, err := numbers.GetOrLoad(ctx, "n", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		if waited := time.Since(began); waited != time.Hour || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v it returned %v", waited, err)
		}
	})
}
