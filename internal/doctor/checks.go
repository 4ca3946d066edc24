package doctor

// A Name is the name of a check, and of its section in docs/doctor.md.
type Name string

// The names of checks.
const (
	SettingsValid   Name = "settings-valid"
	SettingsListen  Name = "settings-listen"
	SettingsSecrets Name = "settings-secrets"
	SettingsTLS     Name = "settings-tls"
	SettingsProxy   Name = "settings-proxy"
	SettingsGuard   Name = "settings-guard"
	SettingsDNS     Name = "settings-dns"

	ProcessFiles  Name = "process-files"
	ProcessMemory Name = "process-memory"
	ProcessCPU    Name = "process-cpu"

	ServerReady   Name = "server-ready"
	ServerVersion Name = "server-version"
	ServerClock   Name = "server-clock"
	ServerTLS     Name = "server-tls"

	RedisReach       Name = "redis-reach"
	RedisVersion     Name = "redis-version"
	RedisData        Name = "redis-data"
	RedisClock       Name = "redis-clock"
	RedisEviction    Name = "redis-eviction"
	RedisMemory      Name = "redis-memory"
	RedisPersistence Name = "redis-persistence"
	RedisSaving      Name = "redis-saving"
	RedisReplicas    Name = "redis-replicas"
	RedisCluster     Name = "redis-cluster"
	RedisConnections Name = "redis-connections"
	RedisRights      Name = "redis-rights"
	RedisLosses      Name = "redis-losses"

	SQLiteFiles     Name = "sqlite-files"
	SQLiteSpace     Name = "sqlite-space"
	SQLiteLog       Name = "sqlite-log"
	SQLiteSchema    Name = "sqlite-schema"
	SQLiteIntegrity Name = "sqlite-integrity"
)

// Checks are the names of all checks, in the order of a report.
var Checks = []Name{
	SettingsValid, SettingsListen, SettingsSecrets, SettingsTLS, SettingsProxy, SettingsGuard, SettingsDNS,
	ProcessFiles, ProcessMemory, ProcessCPU,
	ServerReady, ServerVersion, ServerClock, ServerTLS,
	RedisReach, RedisVersion, RedisData, RedisClock, RedisEviction, RedisMemory, RedisPersistence, RedisSaving,
	RedisReplicas, RedisCluster, RedisConnections, RedisRights, RedisLosses,
	SQLiteFiles, SQLiteSpace, SQLiteLog, SQLiteSchema, SQLiteIntegrity,
}
