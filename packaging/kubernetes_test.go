package packaging

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// theContainer gives the deployment's one container.
func theContainer(t *testing.T) container {
	t.Helper()
	all := manifest[deployment](t, "deployment.yaml").Spec.Template.Spec.Containers
	require.Len(t, all, 1)
	return all[0]
}

func TestEveryManifestIsAppliedAndOfTheKindItSays(t *testing.T) {
	want := map[string]string{
		"deployment.yaml": "apps/v1 Deployment", "disruption.yaml": "policy/v1 PodDisruptionBudget",
		"secret.yaml": "v1 Secret", "service.yaml": "v1 Service",
	}
	k := manifest[kustomization](t, "kustomization.yaml")
	require.Equal(t, "kustomize.config.k8s.io/v1beta1 Kustomization", k.APIVersion+" "+k.Kind)
	files, err := filepath.Glob(filepath.Join(manifests, "*"))
	require.NoError(t, err)
	require.Len(t, files, len(want)+1, "every file is in the kustomization")
	require.Len(t, k.Resources, len(want))
	for _, file := range k.Resources {
		text := read(t, filepath.Join(manifests, file))
		var h head
		require.NoError(t, yaml.Unmarshal([]byte(text), &h))
		require.Equal(t, want[file], h.APIVersion+" "+h.Kind)
		require.Equal(t, "ringback", h.Metadata.Name)
		require.NotContains(t, text, "namespace:", "whoever applies it says where")
	}
	require.Equal(t, theContainer(t).Image, k.Images[0].Name, "the image is named in one place")
	require.NotContains(t, []string{"", "latest"}, k.Images[0].NewTag)
}

func TestSelectorsFindThePods(t *testing.T) {
	d := manifest[deployment](t, "deployment.yaml")
	labels := d.Spec.Template.Metadata.Labels
	require.NotEmpty(t, labels)
	require.Equal(t, labels, d.Spec.Selector.MatchLabels)
	require.Equal(t, labels, manifest[service](t, "service.yaml").Spec.Selector)
	require.Equal(t, labels, manifest[disruption](t, "disruption.yaml").Spec.Selector.MatchLabels)
	require.NotEmpty(t, d.Spec.Template.Spec.TopologySpreadConstraints)
	for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		require.Equal(t, labels, c.LabelSelector.MatchLabels)
		require.Equal(t, "ScheduleAnyway", c.WhenUnsatisfiable, "a cluster of one node runs it too")
		require.Equal(t, 1, c.MaxSkew)
	}
}

func TestARollingUpdateAndADrainedNodeLeaveOneServing(t *testing.T) {
	d, b := manifest[deployment](t, "deployment.yaml"), manifest[disruption](t, "disruption.yaml")
	require.Equal(t, "RollingUpdate", d.Spec.Strategy.Type)
	require.Equal(t, new(0), d.Spec.Strategy.RollingUpdate.MaxUnavailable)
	require.Positive(t, d.Spec.Strategy.RollingUpdate.MaxSurge)
	require.Less(t, b.Spec.MinAvailable, d.Spec.Replicas, "else no node could ever be drained")
	require.Positive(t, b.Spec.MinAvailable)
	require.Equal(t, "AlwaysAllow", b.Spec.UnhealthyPodEvictionPolicy)
}

func TestAPodHasTheTimeThatAStopTakes(t *testing.T) {
	settings := make(map[string]string)
	for _, e := range theContainer(t).Env {
		settings[e.Name] = e.Value
	}
	grace, drain := duration(t, settings["RINGBACK_GRACE"]), duration(t, settings["RINGBACK_DRAIN"])
	p := manifest[deployment](t, "deployment.yaml").Spec.Template.Spec
	require.Greater(t, time.Duration(p.TerminationGracePeriodSeconds)*time.Second, grace+5*time.Second)
	require.GreaterOrEqual(t, drain, 5*time.Second, "a Service takes a while to forget a pod")
	require.LessOrEqual(t, drain, grace/2, "attempts in flight need time too")
}

func TestPodsAreRestricted(t *testing.T) {
	p, c := manifest[deployment](t, "deployment.yaml").Spec.Template.Spec, theContainer(t)
	require.True(t, p.SecurityContext.RunAsNonRoot)
	user := strconv.Itoa(p.SecurityContext.RunAsUser) + ":" + strconv.Itoa(p.SecurityContext.RunAsGroup)
	require.Equal(t, the(t, lastStage(t), "USER"), user)
	require.Equal(t, "RuntimeDefault", p.SecurityContext.SeccompProfile.Type)
	require.Equal(t, new(false), p.AutomountServiceAccountToken)
	require.Equal(t, new(false), c.SecurityContext.AllowPrivilegeEscalation)
	require.True(t, c.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities.Drop)
	require.Contains(t, c.Resources.Requests, "cpu")
	require.Contains(t, c.Resources.Requests, "memory")
	require.Contains(t, c.Resources.Limits, "memory")
}

func TestNoVariablesOfServiceLinksGetIntoThePods(t *testing.T) {
	require.Equal(t, new(false), manifest[deployment](t, "deployment.yaml").Spec.Template.Spec.EnableServiceLinks)
	name := strings.ToUpper(manifest[service](t, "service.yaml").Metadata.Name)
	code, _, stderr := ringback(t, []string{name + "_PORT=tcp://10.0.0.1:8080"}, "version")
	require.Equal(t, 2, code, "if links did no harm, they could stay")
	require.Contains(t, stderr, "RINGBACK_PORT is not a setting")
}

func TestPortsAgreeAndProbesAskWhatTheAPIHas(t *testing.T) {
	c, s := theContainer(t), manifest[service](t, "service.yaml")
	require.Len(t, c.Ports, 1)
	require.Equal(t, the(t, lastStage(t), "EXPOSE"), strconv.Itoa(c.Ports[0].ContainerPort))
	require.Len(t, s.Spec.Ports, 1)
	require.Equal(t, c.Ports[0].Name, s.Spec.Ports[0].TargetPort)
	require.Positive(t, s.Spec.Ports[0].Port)

	var contract struct{ Paths map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "../api/openapi.yaml")), &contract))
	for path, probes := range map[string][]probe{"/readyz": {c.ReadinessProbe}, "/healthz": {c.LivenessProbe, c.StartupProbe}} {
		require.Contains(t, contract.Paths, path)
		for _, p := range probes {
			require.Equal(t, path, p.HTTPGet.Path)
			require.Equal(t, c.Ports[0].Name, p.HTTPGet.Port)
			require.Positive(t, p.PeriodSeconds)
			require.Positive(t, p.FailureThreshold)
		}
	}
	require.Greater(t, c.ReadinessProbe.TimeoutSeconds, 2, "/readyz looks at the store for up to 2 s")
}

func TestTheContainerRunsServeWithRealSettings(t *testing.T) {
	c := theContainer(t)
	require.Equal(t, "serve", c.Args[0])
	requireFlags(t, "serve", c.Args[1:])
	given := manifest[secret](t, "secret.yaml")
	require.Equal(t, "Opaque", given.Type)
	var names, used []string
	for _, e := range c.Env {
		names = append(names, e.Name)
		switch ref := e.ValueFrom.SecretKeyRef; e.Name {
		case "RINGBACK_TOKEN", "RINGBACK_STORE":
			require.Equal(t, given.Metadata.Name, ref.Name)
			require.Contains(t, given.StringData, ref.Key)
			require.Empty(t, e.Value)
			used = append(used, ref.Key)
		case "RINGBACK_ADDR":
			require.Equal(t, ":"+strconv.Itoa(c.Ports[0].ContainerPort), e.Value)
		default:
			require.Empty(t, ref)
			require.NotEmpty(t, e.Value)
		}
	}
	requireSettings(t, names)
	slices.Sort(used)
	require.Equal(t, []string{"store", "token"}, used)
}

func TestThePlaceholdersOfTheSecretAreAllThatKeepsItFromStarting(t *testing.T) {
	given := manifest[secret](t, "secret.yaml").StringData
	good := map[string]string{"token": "a-token", "store": "redis://127.0.0.1:1/0"}
	for replaced, want := range map[string]string{"store": "token: ", "token": "store: "} {
		var env []string
		for _, e := range theContainer(t).Env {
			value := e.Value
			if key := e.ValueFrom.SecretKeyRef.Key; key == replaced {
				value = good[key]
			} else if key != "" {
				value = given[key]
			}
			env = append(env, e.Name+"="+value)
		}
		code, _, stderr := ringback(t, append(env, "RINGBACK_ADDR=127.0.0.1:0"), "serve")
		require.Equal(t, 1, code, stderr)
		require.Contains(t, stderr, "ringback: "+want)
		require.NotContains(t, stderr, ";", "one fault, and no more")
	}
}
