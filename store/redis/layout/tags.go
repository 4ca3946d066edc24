package layout

import "strconv"

// Version is the version of the layout, kept in <prefix>:meta. Data of another version are refused.
const Version = 7

// MetaKey returns the key with the layout's version, the number of shards and the data's id.
func MetaKey(prefix string) string { return prefix + ":meta" }

// DocumentsKey returns the key of the documents of a kind that apply to all shards.
func DocumentsKey(prefix, kind string) string { return prefix + ":" + kind + "s" }

// ChangesKey returns the key of the last changes of these documents: `revision name` by revision.
func ChangesKey(prefix, kind string) string { return "{" + DocumentsKey(prefix, kind) + "}:changes" }

// ClusterShards is the default number of shards of a new store on a cluster.
const ClusterShards = 16

// hashSlots is the number of slots of a cluster
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
const hashSlots = 16384

// Tags returns the hash tags of n shards, without braces, such as rb:5.168. They are spread evenly over the slots, so
// that servers with equal shares of the slots get equal shares of the shards. They do not change within a Version.
func Tags(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = spread(prefix+":"+strconv.Itoa(i), i, n)
	}
	return all
}

// spread appends to a tag the first number that puts its slot in the middle half of the shard's share of the slots.
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

// hashSlot returns the slot of a key without braces: CRC-16 (XMODEM) modulo the number of slots.
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
