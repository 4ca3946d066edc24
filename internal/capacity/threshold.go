package capacity

import "sort"

// Threshold returns how much one holder has to stay under. It falls with the square of what is free:
//
//	used < weight × (free / all)² × all
//
// This is the dynamic threshold of shared-memory switches (Choudhury and Hahne, 1998), squared: a holder that takes
// part of what is free leaves enough for the next, however many came before and give nothing back. After k holders that
// each took all that they may, about all / (weight × k) is free; with a threshold linear in what is free it would be
// all / (weight + 1)^k.
//
//	weight   one holder alone   nine, each          fifty, each
//	1        38 %               8 %, 28 % is free   1.7 %, 13 % is free
//	12       75 %               10 %, 8 % is free   2 %, 2.8 % is free
//	128      92 %               11 %, 3 % is free   2 %, 1.2 % is free
func Threshold(free, all, weight int) float64 {
	left := float64(max(0, free))
	return float64(weight) * left * left / float64(all)
}

// Allowance returns how many more a holder may take that has used of them, while free are left of all. One without any
// may always have one.
func Allowance(used, free, all, weight int) int {
	return sort.Search(free, func(n int) bool { return float64(used+n) >= max(1, Threshold(free-n, all, weight)) })
}
