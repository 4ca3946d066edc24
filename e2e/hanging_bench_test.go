package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringback/ringback/internal/badreceiver"
)

// BenchmarkGoodLanesBesideHangingHosts registers 400 jobs a second for half a minute, every second one for one of 50
// hosts that take it and never answer, and reports how late those of 50 good lanes arrive. The policy is the default.
func BenchmarkGoodLanesBesideHangingHosts(b *testing.B) {
	const (
		rate  = 400
		hosts = 50
		long  = 30 * time.Second

		clientsOf = 8
	)
	for _, e := range benchEngines {
		b.Run(e.name, func(b *testing.B) {
			for range b.N {
				store := e.open(b)
				p, s := start(b, store), newSink(b)
				var hanging []string
				for range hosts {
					hanging = append(hanging, badreceiver.Start(b, badreceiver.NeverAnswers).URL)
				}
				var n atomic.Int64
				var clients sync.WaitGroup
				began := time.Now()
				for c := range clientsOf {
					clients.Go(func() {
						for k := 0; ; k++ {
							at := began.Add(time.Duration(k*clientsOf+c) * time.Second / rate)
							if at.Sub(began) > long {
								return
							}
							time.Sleep(time.Until(at))
							i := int(n.Add(1))
							job := obj{"topic": "mixed", "lane": fmt.Sprintf("good-%d", i/2%hosts), "url": s.URL, "delay": "20ms"}
							if k%2 == 1 {
								job = obj{"topic": "mixed", "url": hanging[i/2%hosts], "delay": "20ms"}
							}
							status, answer, err := send(p.url, http.MethodPost, "/v1/jobs", job)
							if err != nil || status != http.StatusCreated {
								b.Errorf("%d %s %v", status, answer, err)
							}
						}
					})
				}
				clients.Wait()
				s.reached(b, n.Load()/2)
				s.mu.Lock()
				slices.Sort(s.late)
				p50, p99, most := s.late[len(s.late)/2], s.late[len(s.late)*99/100], s.late[len(s.late)-1]
				s.mu.Unlock()
				b.ReportMetric(float64(n.Load())/long.Seconds(), "jobs/s")
				b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
				b.ReportMetric(float64(most.Microseconds())/1000, "max-ms")
				p.kill()
			}
		})
	}
}
