package app

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/doctor"
	"github.com/ringback/ringback/internal/testkit"
)

func TestDoctor_RunsBesideAService(t *testing.T) {
	o := testOptions(t)
	o.Token, o.Version, o.Proxy = "0123456789abcdef", "v7", ProxyNone
	a := run(t, o)
	ready := func() bool { status, _ := a.ask(t, "GET", "/readyz", ""); return status == 200 }
	require.Eventually(t, ready, testkit.MustCome, time.Millisecond)
	o.Roles = Roles{RoleAPI} // looks up no names
	findings := Doctor(t.Context(), o, DoctorOptions{Server: "http://" + a.Addr(), ServerNamed: true})
	levels := make(map[doctor.Name]doctor.Finding)
	for _, f := range findings {
		levels[f.Check] = f
	}
	for _, check := range []doctor.Name{
		doctor.SettingsValid, doctor.SettingsListen, doctor.SettingsDNS, doctor.ProcessFiles, doctor.ServerReady,
		doctor.ServerVersion, doctor.ServerClock,
		doctor.SQLiteFiles, doctor.SQLiteLog, doctor.SQLiteSchema, doctor.SQLiteIntegrity,
	} {
		require.Equal(t, doctor.OK, levels[check].Level, levels[check])
	}
	require.Equal(t, doctor.Warn, levels[doctor.SettingsSecrets].Level)
}

func TestDoctor_ReportsWhatIsRefusedAndExaminesTheRest(t *testing.T) {
	findings := Doctor(t.Context(), Options{Store: "main=redis://127.0.0.1:1 " +
		"eu=sqlite:/nowhere/jobs.db", Roles: Roles{RoleAPI}}, DoctorOptions{Err: errors.New("grace: is odd")})
	subjects := make(map[string]doctor.Level)
	for _, f := range findings {
		if f.Level == doctor.Fault {
			subjects[f.Subject+" "+string(f.Check)] = f.Level
		}
	}
	require.Equal(t, map[string]doctor.Level{
		"settings settings-valid": doctor.Fault, "store main (redis://127.0.0.1:1/0) redis-reach": doctor.Fault,
		"store eu (sqlite:/nowhere/jobs.db) sqlite-files": doctor.Fault,
	}, subjects)
	require.NotEmpty(t, Doctor(t.Context(), Options{Store: "postgres://x", Roles: Roles{RoleAPI}},
		DoctorOptions{Err: errors.New("store: must be sqlite:FILE")}))
}

func TestProxyAddr_IsThatOfReceivers(t *testing.T) {
	for text, want := range map[ProxyURL]string{
		ProxyNone: "", "http://proxy.internal": "proxy.internal:80",
		"https://user:pass@proxy.internal": "proxy.internal:443", "http://10.0.0.1:3128": "10.0.0.1:3128", "x": "",
	} {
		require.Equal(t, want, Options{Proxy: text}.proxyAddr(), text)
	}
}

func TestNeededDescriptors_IsTheLimitFromWhichOnNothingIsLogged(t *testing.T) {
	need := neededDescriptors(1, true)
	require.GreaterOrEqual(t, planDescriptors(need, 1, true).deliveries, 2048)
	require.Less(t, planDescriptors(need-1, 1, true).deliveries, 2048)
	require.Less(t, neededDescriptors(3, false), neededDescriptors(3, true))
}
