package policy

import "testing"

func BenchmarkJudge(b *testing.B) {
	terms := Builtin().Terms(Terms{})
	for name, result := range map[string]Result{
		"delivered": {Status: 200}, "again": {Status: 500}, "no answer": {Class: ClassRefused},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Judge(terms, result, Progress{FailedAttempts: 1}, 0.5)
			}
		})
	}
}
