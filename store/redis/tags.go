package redis

import "strconv"

// The layouts of the data, as the version in <prefix>:meta. They differ in the hash tags of the shards, which decide where
// a cluster keeps them, and in the form of new records. A program refuses a layout that it does not know:
//
//	1   {rb:5}       as they come: for one server, and for data that were moved to a cluster
//	2   {rb:5.17}    spread evenly over the slots, so that primaries with equal shares of them have equal shares of shards
//	3, 4             the same tags, and records that leave out of a URL what the lane says (form 2)
const (
	layoutPlain  = 1
	layoutSpread = 2
	layoutShort  = 2 // more than the layout with the same tags
	layoutNewest = layoutSpread + layoutShort
)

// isShort tells whether a layout has records of form 2.
func isShort(layout int) bool { return layout > layoutSpread }

// isSpread tells whether its tags are spread over the slots.
func isSpread(layout int) bool { return layout%layoutShort == 0 }

// clusterShards is the number of shards of a new store on a cluster, unless it is said.
const clusterShards = 16

// hashSlots is the number of slots of a cluster (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
const hashSlots = 16384

// tags are the hash tags of n shards, without their braces. They are a part of the data's layout: they never change.
func tags(prefix string, layout, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = prefix + ":" + strconv.Itoa(i)
		if isSpread(layout) {
			all[i] = spread(all[i], i, n)
		}
	}
	return all
}

// spread adds the first number to a tag that brings it into the middle half of the shard's share of the slots.
func spread(tag string, shard, n int) string {
	share := hashSlots / n
	first := shard*hashSlots/n + share/4
	for i := 0; ; i++ {
		candidate := tag + "." + strconv.Itoa(i)
		if at := hashSlot(candidate); at >= first && at < first+max(share/2, 1) {
			return candidate
		}
	}
}

// hashSlot is the slot of a key that has no braces: CRC-16 (XMODEM) modulo the slots.
func hashSlot(key string) int {
	var crc uint16
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % hashSlots
}
