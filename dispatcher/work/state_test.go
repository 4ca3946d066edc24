package work

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A Pacer that is stored and restored after every start gives the same starts as one that is not.
func TestRestore_GoesOnWithTheSameStarts(t *testing.T) {
	rates := []policy.Rate{{}, {Starts: 50, Per: time.Second}, {Starts: 7, Per: time.Minute}}
	for _, rate := range rates {
		for _, laneRate := range rates {
			one := newPacer(rate, laneRate)
			two, err := restore(rate, laneRate, nil)
			require.NoError(t, err)
			for i := range 300 {
				q := job.Queue{Lane: fmt.Sprint(i * i % 7)}
				earliest := time.Duration(i/50) * time.Second
				require.Equal(t, one.Next(q, earliest), two.Next(q, earliest), "%v %v %d", rate, laneRate, i)
				text, err := json.Marshal(two)
				require.NoError(t, err)
				two, err = restore(rate, laneRate, text)
				require.NoError(t, err)
				require.Equal(t, one.End(), two.End())
			}
		}
	}
}

func TestMarshalJSON_IsBounded(t *testing.T) {
	p := newPacer(policy.Rate{Starts: 1000, Per: time.Second}, policy.Rate{Starts: 1, Per: time.Hour})
	for i := range 3 * maxRemembered {
		p.Next(job.Queue{Lane: fmt.Sprint(i)}, 0)
		p.Next(job.Queue{Lane: "one"}, 0)
	}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Less(t, len(text), 300<<10)
}

func TestRestore_RefusesWhatItHasNotWritten(t *testing.T) {
	for _, text := range []string{`[]`, `{"lanes":[["x",1,2,3]]}`, `{`} {
		_, err := restore(policy.Rate{}, policy.Rate{}, []byte(text))
		require.Error(t, err, text)
	}
}
