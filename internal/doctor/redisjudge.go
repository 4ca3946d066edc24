package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/store/redis/connect"
)

// Bounds beyond which something is reported.
const (
	slowTrip    = 20 * time.Millisecond // each claim and each settlement takes a round trip
	memoryWarn  = 80                    // percent
	oldestMajor = 6
	oldestMinor = 2
	shardConns  = 3 // of a process to a server, beside those for calls: two that block, one of the carrier
	replicaLag  = 10
)

// judges judge one server, each in one respect.
var judges = []struct {
	check  Name
	server func(*facts, *server) Finding
}{
	{RedisReach, judgeReach},
	{RedisVersion, judgeVersion},
	{RedisClock, judgeClock},
	{RedisEviction, judgeEviction},
	{RedisMemory, judgeMemory},
	{RedisPersistence, judgePersistence},
	{RedisSaving, judgeSaving},
	{RedisReplicas, judgeReplicas},
	{RedisConnections, judgeConnections},
	{RedisRights, judgeRights},
	{RedisLosses, judgeLosses},
}

// infoRight is the remedy for a server that does not tell enough.
const infoRight = "Give the user the rights +info and +config|get (docs/redis.md), or ask who runs the server."

// hidden returns the finding for what a server does not tell.
func (s *server) hidden(what string) Finding {
	if s.err != nil {
		what += ": " + s.err.Error()
	}
	return unknown(infoRight, "the server does not tell %s", what)
}

func judgeReach(f *facts, s *server) Finding {
	switch {
	case f.two:
		return fault("Let the name or the load balancer in --store lead to one server, or use redis+sentinel://.",
			"%v; jobs that one takes are unknown to the other", connect.ErrTwoServers)
	case s.down:
		return fault("Start the server again, or let a replica take over: its shards are down until then.", "%v", s.err)
	case len(s.trips) == 0:
		return s.hidden("the time")
	}
	seen := fmt.Sprintf("a round trip takes %s (the slowest of %d: %s)", short(s.median()), len(s.trips),
		short(s.trips[len(s.trips)-1]))
	if s.median() > slowTrip {
		return warn("Run Ringback near Redis, in the same zone: each claim and each result takes a round trip.", "%s",
			seen)
	}
	return good("%s", seen)
}

// short rounds a duration to what people read.
func short(d time.Duration) time.Duration { return d.Round(max(d/100, 10*time.Microsecond)) }

func judgeVersion(f *facts, s *server) Finding {
	version := s.info["redis_version"]
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	mode := s.info["redis_mode"]
	switch {
	case err != nil || err2 != nil:
		return s.hidden("its version")
	case a < oldestMajor || a == oldestMajor && b < oldestMinor:
		return fault("Upgrade Redis to 6.2 or later.", "Redis %s lacks commands that Ringback needs", version)
	case f.Wait.Fsync && (a < 7 || a == 7 && b < 2):
		return fault("Upgrade Redis to 7.2, or leave fsync out of --redis-wait.", "Redis %s cannot wait for fsync",
			version)
	case mode == "sentinel" || mode == "cluster" && !f.cluster:
		return fault("Use redis+sentinel:// or redis+cluster:// in --store.", "the server is one of a %s", mode)
	}
	return good("Redis %s, %s", version, mode)
}

func judgeClock(_ *facts, s *server) Finding {
	if len(s.trips) == 0 {
		return s.hidden("the time")
	}
	return compareClocks("Redis", s.ahead, s.precision)
}

func judgeEviction(_ *facts, s *server) Finding {
	policy, known := s.settings["maxmemory-policy"]
	switch {
	case !known:
		return s.hidden("its maxmemory-policy")
	case connect.Evicts(policy):
		return fault("Run CONFIG SET maxmemory-policy noeviction, and set it in redis.conf.", "maxmemory-policy is "+
			"%s: Redis removes jobs when memory is full; Ringback refuses to start, or to register jobs", policy)
	}
	return good("maxmemory-policy is %s", policy)
}

func judgeMemory(_ *facts, s *server) Finding {
	used, known := s.number("used_memory")
	most, limited := s.number("maxmemory")
	machine, _ := s.number("total_system_memory")
	whose := "maxmemory"
	if most == 0 {
		most, whose = machine, "the machine"
	}
	switch {
	case !known || !limited:
		return s.hidden("its memory")
	case most == 0:
		return unknown("Set maxmemory with room above what you expect.", "%s are used, and there is no maxmemory",
			Size(used))
	case used >= most:
		return fault("Raise maxmemory, or shorten keep_delivered and keep_dead of the largest topics.",
			"memory is full (%s of %s): registrations get 503", Size(used), Size(most))
	case used*100 >= most*memoryWarn:
		return warn("Raise maxmemory, or shorten keep_delivered and keep_dead of the largest topics.",
			"%s of %s (%s) are used", Size(used), Size(most), whose)
	case whose != "maxmemory":
		return warn("Set maxmemory below the memory of the machine: a full Redis refuses jobs, a full machine kills "+
			"Redis.", "there is no maxmemory; %s are used, the machine has %s", Size(used), Size(most))
	}
	return good("%s of %s are used", Size(used), Size(most))
}

func judgePersistence(f *facts, s *server) Finding {
	appends, known := s.settings["appendonly"]
	saves, knows := s.settings["save"]
	fsync := s.settings["appendfsync"]
	const appendOnly = "Set appendonly yes (docs/redis.md#durability)."
	switch {
	case !known || !knows:
		return s.hidden("whether it persists data")
	case f.Wait.Fsync && appends != "yes":
		return fault("Set appendonly yes, or leave fsync out of --redis-wait.",
			"--redis-wait asks for fsync, but appendonly is %s: Ringback refuses to start", appends)
	case !connect.IsPersistent(s.settings):
		return warn(appendOnly, "Redis persists nothing: all jobs are lost when its process ends")
	case appends != "yes":
		return warn(appendOnly, "snapshots only (save %s): when Redis dies, all accepted jobs and results since the "+
			"last one are lost", saves)
	case fsync == "no":
		return warn("Set appendfsync everysec or always.",
			"appendfsync is no: when the machine dies, some 30 seconds of accepted jobs are lost")
	case fsync == "always":
		return good("appendonly with appendfsync always: an accepted job survives the machine")
	case f.Wait.Fsync:
		return good("appendonly with appendfsync %s: a job answered with \"synced\": true survives the machine", fsync)
	}
	return good("appendonly with appendfsync %s: when the machine dies, up to about two seconds of accepted jobs are "+
		"lost", fsync)
}

// judgeSaving looks at the last writes to disk.
func judgeSaving(_ *facts, s *server) Finding {
	if s.info["rdb_last_bgsave_status"] == "" {
		return s.hidden("whether its last writes to disk succeeded")
	}
	var failed []string
	for _, field := range []string{"rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"} {
		if value := s.info[field]; value != "" && value != "ok" {
			failed = append(failed, field+" is "+value)
		}
	}
	switch {
	case len(failed) > 0:
		return fault("Look at Redis's log: its disk is full or fails, or it has no memory to fork "+
			"(vm.overcommit_memory).", "%s", strings.Join(failed, ", "))
	case s.info["loading"] == "1":
		return fault("Wait until it has loaded its data.", "Redis is loading its data")
	}
	return good("its last writes to disk succeeded")
}

func judgeReplicas(f *facts, s *server) Finding {
	role := s.info["role"]
	count, known := s.number("connected_slaves")
	least, _ := s.setting("min-replicas-to-write")
	if role == "slave" {
		return fault("Name the primary in --store, or use redis+sentinel://.",
			"the server is a replica: it takes no writes")
	}
	if !known {
		return s.hidden("its replicas")
	}
	online, late := int64(0), ""
	for i := range count {
		state := s.info[fmt.Sprintf("slave%d", i)]
		lag, err := strconv.Atoi(field(state, "lag"))
		if field(state, "state") == "online" && (err != nil || lag <= replicaLag) {
			online++
		} else {
			late = fmt.Sprintf("%s:%s is %s, %s s late", field(state, "ip"), field(state, "port"),
				field(state, "state"), field(state, "lag"))
		}
	}
	switch {
	case online < least:
		return fault("Bring replicas back, or lower min-replicas-to-write.",
			"%d replicas follow, min-replicas-to-write is %d: Redis refuses all writes", online, least)
	case online < int64(f.Wait.Replicas):
		return warn("Bring replicas back, or lower --redis-wait: each registration waits in vain for its timeout.",
			"%d replicas follow, --redis-wait asks for %d", online, f.Wait.Replicas)
	case late != "":
		return warn("Look at that replica and the network to it.", "%s", late)
	case count == 0:
		return good("no replicas: jobs wait for this server when it is down")
	case f.Wait.Replicas == 0 && least == 0:
		return warn("Use --redis-wait replicas=1 or Redis's min-replicas-to-write 1, if no accepted job may be lost "+
			"(docs/redis.md#durability).", "%d replicas follow, and no write waits for them: a failover loses what "+
			"the promoted one had not received", online)
	}
	return good("%d replicas follow", online)
}

// field returns a field of a text such as ip=127.0.0.1,state=online,lag=1.
func field(text, name string) string {
	for part := range strings.SplitSeq(text, ",") {
		if value, ok := strings.CutPrefix(part, name+"="); ok {
			return value
		}
	}
	return "unknown"
}

func judgeConnections(f *facts, s *server) Finding {
	now, known := s.number("connected_clients")
	most, knows := s.number("maxclients")
	keepalive, tells := s.setting("tcp-keepalive")
	idle, _ := s.setting("timeout")
	need := int64(f.maxConns + shardConns*max(f.shards, 1))
	switch {
	case !known || !knows:
		return s.hidden("its connections")
	case now+need > most:
		return warn("Raise maxclients (and the limit of open files of Redis), or set pool_size in --store.",
			"%d of %d connections are open, a further process of Ringback takes up to %d", now, most, need)
	case tells && keepalive == 0:
		return warn("Set tcp-keepalive 300.",
			"tcp-keepalive is 0: connections of machines that died stay open and count against maxclients")
	case idle > 0 && idle < 10:
		return warn("Set timeout 0, or 60 and more.",
			"timeout is %d: Redis closes idle connections all the time, and each is opened anew", idle)
	}
	return good("%d of %d connections are open, a process takes up to %d", now, most, need)
}

func judgeRights(_ *facts, s *server) Finding {
	const remedy = "Give them to the user with ACL SETUSER, as in docs/redis.md#rights."
	switch r := s.rights; {
	case r == nil && s.err != nil:
		return unknown("Compare the user's rights with docs/redis.md#rights.", "the rights could not be read: %v",
			s.err)
	case r == nil:
		return unknown("Compare the user's rights with docs/redis.md#rights.",
			"Redis tells the rights of users from version 7 on")
	case len(r.missing) > 0:
		return fault(remedy, "the user may not call %s on the keys of the store", strings.Join(r.missing, ", "))
	case len(r.optional) > 0:
		return warn(remedy, "the user may not call %s: a part of Ringback does not work",
			strings.Join(r.optional, ", "))
	}
	return good("the user has all rights")
}

func judgeLosses(_ *facts, s *server) Finding {
	evicted, known := s.number("evicted_keys")
	expired, _ := s.number("expired_keys")
	rejected, _ := s.number("rejected_connections")
	switch {
	case !known:
		return s.hidden("whether it evicted keys")
	case evicted > 0:
		return warn("Set maxmemory-policy noeviction, then run ringback verify --repair: jobs may be missing.",
			"Redis has evicted %d keys since its start", evicted)
	case rejected > 0:
		return warn("Raise maxclients, and see who opens so many connections (CLIENT LIST).",
			"Redis has rejected %d connections since its start", rejected)
	}
	return good("no key was evicted and no connection rejected; %d keys expired, as markers and replies do", expired)
}
