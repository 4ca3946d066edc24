package redis

import "strconv"

// layoutVersion is the version of the data in <prefix>:meta. Data of another one are refused.
const layoutVersion = 5

// clusterShards is the default number of shards of a new store on a cluster.
const clusterShards = 16

// hashSlots is the number of slots of a cluster (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
const hashSlots = 16384

// tags returns the hash tags of n shards, without their braces, such as rb:5.17. They are spread evenly over the slots, so
// that primaries with equal shares of them have equal shares of shards. They never change within a layout's version.
func tags(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = spread(prefix+":"+strconv.Itoa(i), i, n)
	}
	return all
}

// spread appends the first number to a tag that puts it into the middle half of the shard's share of the slots.
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
