package packaging

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const manifests = "kubernetes"

// document is a YAML document. Unknown names are left to kubectl, which rejects them.
type document map[string]any

func manifest(t *testing.T, name string) document {
	t.Helper()
	var d document
	readYAML(t, filepath.Join(manifests, name), &d)
	return d
}

// at returns the value at a path of names and list indexes; nil: none.
func (d document) at(path string) any {
	var here any = d
	for name := range strings.SplitSeq(path, "/") {
		switch all := here.(type) {
		case document:
			here = all[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(all) {
				return nil
			}
			here = all[i]
		default:
			return nil
		}
	}
	return here
}

// number returns a required number.
func (d document) number(t *testing.T, path string) int {
	t.Helper()
	n, ok := d.at(path).(int)
	require.True(t, ok, "%s: %v", path, d.at(path))
	return n
}

const (
	podPath       = "spec/template/spec/"
	containerPath = podPath + "containers/0/"
)

// variable is a variable of the container: its value, or its key in the Secret.
type variable struct{ value, key string }

// podEnv returns the container's variables by name.
func podEnv(t *testing.T) map[string]variable {
	t.Helper()
	return variables(t, manifest(t, "deployment.yaml"), manifest(t, "secret.yaml").at("metadata/name"))
}

// variables returns the variables of a Deployment's container by name. Keys are of the Secret of that name.
func variables(t *testing.T, d document, secret any) map[string]variable {
	t.Helper()
	all := make(map[string]variable)
	for i := 0; d.at(containerPath+"env/"+strconv.Itoa(i)) != nil; i++ {
		path := containerPath + "env/" + strconv.Itoa(i)
		v := variable{}
		v.value, _ = d.at(path + "/value").(string)
		v.key, _ = d.at(path + "/valueFrom/secretKeyRef/key").(string)
		require.NotEqual(t, v.value == "", v.key == "", path)
		if v.key != "" {
			require.Equal(t, secret, d.at(path+"/valueFrom/secretKeyRef/name"))
		}
		name := fmt.Sprint(d.at(path + "/name"))
		require.NotContains(t, all, name)
		all[name] = v
	}
	return all
}

func TestManifests_AreListedAndShareOneImage(t *testing.T) {
	k := manifest(t, "kustomization.yaml")
	files, err := filepath.Glob(filepath.Join(manifests, "*"))
	require.NoError(t, err)
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			require.Contains(t, k.at("resources"), name)
		}
		require.NotContains(t, read(t, file), "namespace:", "kubectl apply selects the namespace")
	}
	require.Equal(t, manifest(t, "deployment.yaml").at(containerPath+"image"), k.at("images/0/name"))
}

func TestManifests_SelectorsMatchThePods(t *testing.T) {
	d := manifest(t, "deployment.yaml")
	labels := d.at("spec/template/metadata/labels")
	require.NotEmpty(t, labels)
	require.Equal(t, labels, d.at("spec/selector/matchLabels"))
	require.Equal(t, labels, manifest(t, "service.yaml").at("spec/selector"))
	require.Equal(t, labels, manifest(t, "disruption.yaml").at("spec/selector/matchLabels"))
	for _, i := range []string{"0", "1"} {
		require.Equal(t, labels, d.at(podPath+"topologySpreadConstraints/"+i+"/labelSelector/matchLabels"))
	}
	require.Less(t, manifest(t, "disruption.yaml").number(t, "spec/minAvailable"), d.number(t, "spec/replicas"),
		"else no node could ever be drained")
}

func TestNetworkPolicy_LetsInClientsAndOutToPublicAddresses(t *testing.T) {
	d, pods := manifest(t, "network.yaml"), manifest(t, "deployment.yaml")
	require.Equal(t, pods.at("spec/template/metadata/labels"), d.at("spec/podSelector/matchLabels"))
	require.Equal(t, []any{"Ingress", "Egress"}, d.at("spec/policyTypes"), "what is not named is not allowed")
	require.Equal(t, pods.at(containerPath+"ports/0/name"), d.at("spec/ingress/0/ports/0/port"))
	var fenced []netip.Prefix
	for _, block := range []string{"0", "1"} {
		path := "spec/egress/2/to/" + block + "/ipBlock/"
		whole := netip.MustParsePrefix(fmt.Sprint(d.at(path + "cidr")))
		except, ok := d.at(path + "except").([]any)
		require.True(t, ok)
		for _, network := range except {
			prefix := netip.MustParsePrefix(fmt.Sprint(network))
			require.Equal(t, prefix, prefix.Masked())
			require.True(t, whole.Overlaps(prefix), "the API server refuses an exception outside its block")
			fenced = append(fenced, prefix)
		}
	}
	for _, private := range []string{
		"10.1.2.3", "172.20.0.1", "192.168.0.1", "169.254.169.254", "100.100.100.200", "127.0.0.1", "2002:a9fe:a9fe::1",
	} {
		address := netip.MustParseAddr(private)
		require.True(t, slices.ContainsFunc(fenced, func(p netip.Prefix) bool { return p.Contains(address) }), private)
	}
	require.False(t, netip.MustParsePrefix("2000::/3").Contains(netip.MustParseAddr("fd00:ec2::254")))
}

func TestPod_HasTimeForAStop(t *testing.T) {
	env := podEnv(t)
	grace, drain := duration(t, env["RINGBACK_GRACE"].value), duration(t, env["RINGBACK_DRAIN"].value)
	kill := manifest(t, "deployment.yaml").number(t, podPath+"terminationGracePeriodSeconds")
	require.Greater(t, time.Duration(kill)*time.Second, grace+5*time.Second)
	require.GreaterOrEqual(t, drain, 5*time.Second, "a Service takes a while to forget a pod")
	require.LessOrEqual(t, drain, grace/2, "attempts in flight need time too")
}

func TestPod_HasNoServiceLinks(t *testing.T) {
	require.Equal(t, false, manifest(t, "deployment.yaml").at(podPath+"enableServiceLinks"))
	name := strings.ToUpper(fmt.Sprint(manifest(t, "service.yaml").at("metadata/name")))
	links := []string{
		name + "_PORT=tcp://10.0.0.1:8080", name + "_SERVICE_HOST=10.0.0.1",
		name + "_SERVICE_PORT_HTTP=8080",
	}
	code, _, stderr := ringback(t, links, "serve", "--check")
	require.Zero(t, code, "they do no harm in other pods")
	require.Empty(t, stderr)
}

func TestPod_PortsAgreeAndProbesExist(t *testing.T) {
	d := manifest(t, "deployment.yaml")
	port, name := strconv.Itoa(d.number(t, containerPath+"ports/0/containerPort")), d.at(containerPath+"ports/0/name")
	require.Equal(t, onlyInstruction(t, "EXPOSE"), port)
	require.Equal(t, ":"+port, podEnv(t)["RINGBACK_ADDR"].value)
	require.Equal(t, name, manifest(t, "service.yaml").at("spec/ports/0/targetPort"))

	var contract struct{ Paths document }
	readYAML(t, "../api/openapi.yaml", &contract)
	scraped, ok := d.at("spec/template/metadata/annotations").(document)
	require.True(t, ok)
	require.Equal(t,
		document{"prometheus.io/scrape": "true", "prometheus.io/port": port, "prometheus.io/path": "/metrics"}, scraped)
	require.Contains(t, contract.Paths, scraped["prometheus.io/path"])
	for probe, path := range map[string]string{"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"} {
		require.Contains(t, contract.Paths, path)
		require.Equal(t, path, d.at(containerPath+probe+"Probe/httpGet/path"), probe)
		require.Equal(t, name, d.at(containerPath+probe+"Probe/httpGet/port"), probe)
	}
	require.Greater(t, d.number(t, containerPath+"readinessProbe/timeoutSeconds"), 2,
		"/readyz waits for up to 2.4 s: two checks of the stores")
}

func TestPod_RunsServeWithKnownSettingsAsTheImagesUser(t *testing.T) {
	d := manifest(t, "deployment.yaml")
	require.Equal(t, []any{"serve"}, d.at(containerPath+"args"))
	requireSettings(t, slices.Collect(maps.Keys(podEnv(t))))
	user, group := d.number(t, podPath+"securityContext/runAsUser"), d.number(t, podPath+"securityContext/runAsGroup")
	require.Equal(t, onlyInstruction(t, "USER"), fmt.Sprintf("%d:%d", user, group))
}

func TestPod_DoesNotStartWithPlaceholders(t *testing.T) {
	given := manifest(t, "secret.yaml")
	good := map[string]string{
		"token": "a-token-0123456789", "store": "redis://127.0.0.1:1/0",
		"secret-key": strings.Repeat("5e", 32),
	}
	require.Len(t, given.at("stringData"), len(good))
	for placeholder, want := range map[string]string{
		"token": "token: ", "store": "store: ", "secret-key": "RINGBACK_SECRET_KEY: ",
	} {
		var env []string
		for name, v := range podEnv(t) {
			value := v.value
			switch v.key {
			case "":
			case placeholder:
				value = fmt.Sprint(given.at("stringData/" + v.key))
			default:
				value = good[v.key]
			}
			env = append(env, name+"="+value)
		}
		code, _, stderr := ringback(t, append(env, "RINGBACK_ADDR=127.0.0.1:0"), "serve")
		require.Equal(t, 2, code, stderr)
		require.Regexp(t, `^ringback: (\$RINGBACK_[A-Z]+: )?`+want, stderr)
		require.NotContains(t, stderr, ";", "one fault, and no more")
	}
}
