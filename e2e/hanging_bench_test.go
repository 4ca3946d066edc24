package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringback/ringback/internal/badreceiver"
)

// BenchmarkGoodLanesBesideHangingHosts registers 400 jobs per second for 30 s under the default policy, half of them
// for 50 hosts that never respond, and reports how late the jobs of 50 good lanes arrive.
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
							job := obj{
								"topic": "mixed", "lane": fmt.Sprintf("good-%d", i/2%hosts),
								"url": s.URL, "delay": "20ms",
							}
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

// attacks are sets of topics with many attempts that hang for ten minutes.
var attacks = []struct {
	name    string
	kind    badreceiver.Kind
	workers int
	jobs    func() (bodies []obj) // of which the URL and the policy are filled in
}{
	{"none", badreceiver.Good, 256, func() []obj { return nil }},
	{"8-largest-bodies", badreceiver.NeverAccepts, 256, func() []obj { return attack(1, 8, 10<<20) }},
	{"257-bodies-of-256KiB", badreceiver.NeverAccepts, 256, func() []obj { return attack(2, 257, 255<<10) }},
	{"workers-10000", badreceiver.NeverAnswers, 10_000, func() []obj { return attack(1, 3000, 10) }},
	{"9-topics", badreceiver.NeverAnswers, 256, func() []obj { return attack(9, 2700, 10) }},
	{"50-topics", badreceiver.NeverAnswers, 256, func() []obj { return attack(50, 5000, 10) }},
}

// attack is a number of jobs in the topics bad-0, bad-1 and so on, two per lane.
func attack(topics, jobs, bytes int) []obj {
	body, all := strings.Repeat("x", bytes), make([]obj, jobs)
	for i := range all {
		all[i] = obj{
			"topic": fmt.Sprintf("bad-%d", i%topics),
			"lane":  fmt.Sprintf("lane-%d", i/topics/2), "body_text": body,
		}
	}
	return all
}

// BenchmarkOtherTopicsUnderAttack registers 200 jobs per second for 10 s, in ten topics with ten lanes each, while
// attempts of other topics hang, and reports how late they arrive.
func BenchmarkOtherTopicsUnderAttack(b *testing.B) {
	const rate, long = 200, 10 * time.Second
	for _, e := range benchEngines {
		for _, a := range attacks {
			b.Run(e.name+"/"+a.name, func(b *testing.B) {
				for range b.N {
					p, s := start(b, e.open(b), "--max-body=10MiB"), newSink(b)
					target := badreceiver.Start(b, a.kind)
					for n := range 50 {
						call[obj](b, p, http.MethodPut, fmt.Sprintf("/v1/topics/bad-%d", n),
							obj{"workers": a.workers, "timeout": "10m"}, http.StatusOK)
					}
					for _, job := range a.jobs() {
						job["url"] = target.URL
						status, answer, err := send(p.url, http.MethodPost, "/v1/jobs", job)
						if err != nil || status != http.StatusCreated {
							b.Fatal(status, string(answer), err)
						}
					}
					time.Sleep(2 * time.Second)
					hanging := metric(b, p, "ringback_in_flight")
					began := time.Now()
					n := int64(0)
					for ; time.Since(began) < long; n++ {
						time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / rate)))
						status, answer, err := send(p.url, http.MethodPost, "/v1/jobs", obj{
							"topic": fmt.Sprintf("good-%d", n%10), "lane": fmt.Sprintf("lane-%d", n/10%10),
							"url": s.URL, "delay": "20ms",
						})
						if err != nil || status != http.StatusCreated {
							b.Fatal(status, string(answer), err)
						}
					}
					s.reached(b, n)
					s.mu.Lock()
					slices.Sort(s.late)
					b.ReportMetric(float64(s.late[len(s.late)/2].Microseconds())/1000, "p50-ms")
					b.ReportMetric(float64(s.late[len(s.late)*99/100].Microseconds())/1000, "p99-ms")
					b.ReportMetric(float64(s.late[len(s.late)-1].Microseconds())/1000, "max-ms")
					s.mu.Unlock()
					if count, err := strconv.ParseFloat(hanging, 64); err == nil {
						b.ReportMetric(count, "hanging")
					}
					p.kill()
				}
			})
		}
	}
}
