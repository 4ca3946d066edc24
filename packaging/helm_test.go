package packaging

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const chartPath = "helm/ringback"

// withRedis are the values that a chart needs.
const withRedis = `store: {url: "redis://redis:6379/0"}` + "\n"

// runChart lints the chart with values, and returns the texts that it renders by template, or the error.
func runChart(t *testing.T, values string) (texts map[string]string, fault string) {
	t.Helper()
	require.NoError(t, watch())
	if _, err := os.Stat("../bin/chart"); err != nil {
		missing(t, "bin/chart, of make tools,")
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "../bin/chart", chartPath)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(values), &out, &errs
	if cmd.Run() != nil {
		return nil, errs.String()
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &texts))
	return texts, ""
}

// chart returns the objects that the chart renders, by kind and name.
func chart(t *testing.T, values string) map[string]document {
	t.Helper()
	texts, fault := runChart(t, values)
	require.Empty(t, fault)
	objects := make(map[string]document)
	for template, text := range texts {
		if strings.HasSuffix(template, "NOTES.txt") {
			continue
		}
		for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
			var d document
			err := decoder.Decode(&d)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, text)
			if d == nil {
				continue
			}
			name := fmt.Sprint(d.at("kind"), "/", d.at("metadata/name"))
			require.NotContains(t, objects, name)
			objects[name] = d
			require.Equal(t, "ringback", d.at("metadata/labels").(document)["app.kubernetes.io/instance"], name)
		}
	}
	return objects
}

// requireWithin fails for each field of one value that another one lacks or has otherwise, but for those at the paths.
func requireWithin(t *testing.T, want, got any, path string, except ...string) {
	t.Helper()
	switch want := want.(type) {
	case document:
		for name, value := range want {
			if at := path + name; !slices.Contains(except, at) {
				object, isObject := got.(document)
				require.True(t, isObject, path)
				requireWithin(t, value, object[name], at+"/", except...)
			}
		}
	case []any:
		require.Len(t, got, len(want), path)
		for i := range want {
			requireWithin(t, want[i], got.([]any)[i], fmt.Sprint(path, i, "/"), except...)
		}
	default:
		require.Equal(t, want, got, path)
	}
}

func TestChart_HasWhatTheManifestsHave(t *testing.T) {
	objects := chart(t, withRedis+"networkPolicy: {enabled: true}")
	for file, name := range map[string]string{
		"deployment.yaml": "Deployment/ringback", "service.yaml": "Service/ringback",
		"disruption.yaml": "PodDisruptionBudget/ringback", "network.yaml": "NetworkPolicy/ringback",
	} {
		require.Contains(t, objects, name)
		requireWithin(t, manifest(t, file), objects[name], "", containerPath+"image", containerPath+"env")
	}
	want := podEnv(t)
	delete(want, "GOMEMLIMIT") // follows the limit of the container, which is a value
	require.Equal(t, want, variables(t, objects["Deployment/ringback"], "ringback"))
	require.Len(t, objects, 5, "and the Secret")
}

// requireStarts checks that serve accepts the settings of each Deployment, with the values of the Secret.
func requireStarts(t *testing.T, objects map[string]document) {
	t.Helper()
	for name, d := range objects {
		if !strings.HasPrefix(name, "Deployment/") {
			continue
		}
		require.Equal(t, false, d.at(podPath+"enableServiceLinks"), name)
		require.Equal(t, []any{"serve"}, d.at(containerPath+"args"))
		require.Equal(t, d.at("spec/selector/matchLabels"), d.at("spec/template/metadata/labels"))
		env := variables(t, d, "ringback")
		requireSettings(t, slices.Collect(maps.Keys(env)))
		var pairs []string
		for name, v := range env {
			if v.key != "" {
				v.value = secretValue(t, objects, v.key)
			}
			pairs = append(pairs, name+"="+v.value)
		}
		code, _, stderr := ringback(t, pairs, "serve", "--check")
		require.Zero(t, code, stderr)
		require.Empty(t, stderr)
	}
}

// secretValue returns a value of the chart's Secret.
func secretValue(t *testing.T, objects map[string]document, key string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(fmt.Sprint(objects["Secret/ringback"].at("data/" + key)))
	require.NoError(t, err)
	return string(text)
}

func TestChart_StartsOnRedisWithRolesOfTheirOwn(t *testing.T) {
	objects := chart(t, withRedis+`
replicas: 3
worker: {enabled: true, replicas: 4, autoscaling: {enabled: true}}
extraEnv: [{name: RINGBACK_ALLOW_TARGETS, value: shop.internal}]
image: {repository: example/ringback, digest: "sha256:`+strings.Repeat("0f", 32)+`"}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true}
ingress: {enabled: true, className: nginx, tlsSecret: certificate}
service: {type: LoadBalancer, port: 80}
nodeSelector: {disk: ssd}`)
	requireStarts(t, objects)
	api, worker := objects["Deployment/ringback"], objects["Deployment/ringback-worker"]
	require.Equal(t, "api", variables(t, api, "ringback")["RINGBACK_ROLES"].value)
	require.Equal(t, "worker", variables(t, worker, "ringback")["RINGBACK_ROLES"].value)
	require.Equal(t, 3, api.at("spec/replicas"))
	require.Nil(t, worker.at("spec/replicas"), "the autoscaler sets it")
	require.Equal(t, "ringback-worker",
		objects["HorizontalPodAutoscaler/ringback-worker"].at("spec/scaleTargetRef/name"))
	require.NotContains(t, objects, "HorizontalPodAutoscaler/ringback")
	for _, name := range []string{"ringback", "ringback-worker"} {
		labels := objects["Deployment/"+name].at("spec/template/metadata/labels")
		require.Equal(t, labels, objects["Service/"+name].at("spec/selector"))
		require.Equal(t, labels, objects["PodDisruptionBudget/"+name].at("spec/selector/matchLabels"))
		requireWithin(t, objects["ServiceMonitor/ringback"].at("spec/selector/matchLabels"),
			objects["Service/"+name].at("metadata/labels"), "")
	}
	require.NotEqual(t, api.at("spec/selector"), worker.at("spec/selector"))
	require.Equal(t, "ClusterIP", objects["Service/ringback-worker"].at("spec/type"))
	require.Nil(t, api.at("spec/template/metadata/annotations").(document)["prometheus.io/scrape"], "scraped twice")
	require.Equal(t, "example/ringback@sha256:"+strings.Repeat("0f", 32), api.at(containerPath+"image"))
	require.Equal(t, "ssd", worker.at(podPath+"nodeSelector/disk"))
	require.Equal(t, "ringback",
		objects["Ingress/ringback"].at("spec/rules/0/http/paths/0/backend/service/name"))
	var alerts document
	readYAML(t, "monitoring/alerts.yaml", &alerts)
	require.Equal(t, alerts, objects["PrometheusRule/ringback"].at("spec"))
}

func TestChart_StartsOnSQLiteWithOneProcessAndAVolume(t *testing.T) {
	objects := chart(t, `store: {url: "sqlite:/data/ringback.db", persistence: {size: 2Gi}}`)
	requireStarts(t, objects)
	d := objects["Deployment/ringback"]
	require.Equal(t, 1, d.at("spec/replicas"))
	require.Equal(t, "Recreate", d.at("spec/strategy/type"))
	require.Equal(t, d.at(podPath+"securityContext/runAsGroup"), d.at(podPath+"securityContext/fsGroup"))
	require.Equal(t, onlyInstruction(t, "VOLUME"), d.at(containerPath+"volumeMounts/0/mountPath"))
	claim := objects["PersistentVolumeClaim/"+fmt.Sprint(d.at(podPath+"volumes/0/persistentVolumeClaim/claimName"))]
	require.Equal(t, "2Gi", claim.at("spec/resources/requests/storage"))
	require.Equal(t, "keep", claim.at("metadata/annotations").(document)["helm.sh/resource-policy"])
	require.NotContains(t, objects, "PodDisruptionBudget/ringback", "its node could never be drained")
}

func TestChart_KeepsGeneratedSecrets(t *testing.T) {
	first := chart(t, withRedis)
	require.Len(t, secretValue(t, first, "token"), 43)
	require.NotEqual(t, first["Secret/ringback"], chart(t, withRedis)["Secret/ringback"], "made anew without a cluster")
	has, err := yaml.Marshal(map[string]any{"cluster": map[string]any{"ringback": first["Secret/ringback"]}})
	require.NoError(t, err)
	require.Equal(t, first["Secret/ringback"], chart(t, withRedis+string(has))["Secret/ringback"])

	kept := chart(t, withRedis+"secretKey: {existingSecret: mine}\n"+string(has))
	require.Equal(t, secretValue(t, first, "secret-key"), secretValue(t, kept, "secret-key"), "it may not be copied")

	given := chart(t, withRedis+"token: {value: a-token-0123456789}\n"+string(has))
	require.Equal(t, "a-token-0123456789", secretValue(t, given, "token"))
	require.Equal(t, secretValue(t, first, "secret-key"), secretValue(t, given, "secret-key"))

	const one = "autoscaling: {enabled: true, minReplicas: 1}"
	require.NotContains(t, chart(t, withRedis+one), "PodDisruptionBudget/ringback", "its node could never be drained")

	const existing = "{existingSecret: mine, key: x}"
	objects := chart(t, "store: "+existing+"\ntoken: "+existing+"\nsecretKey: "+existing)
	require.NotContains(t, objects, "Secret/ringback")
	require.Equal(t, variable{key: "x"}, variables(t, objects["Deployment/ringback"], "mine")["RINGBACK_SECRET_KEY"])
	texts, _ := runChart(t, "store: "+existing+"\ntoken: "+existing)
	require.Contains(t, texts["ringback/templates/NOTES.txt"],
		"get secret mine \\\n    -o 'go-template={{index .data \"x\" | base64decode}}'")
}

func TestChart_RefusesValuesThatCannotWork(t *testing.T) {
	const sqlite = `store: {url: "sqlite:/data/ringback.db"}` + "\n"
	for values, want := range map[string]string{
		"":                                      "store.url is required",
		sqlite + "replicas: 2":                  "a SQLite store is used by one process",
		sqlite + "worker: {enabled: true}":      "a SQLite store is used by one process",
		sqlite + "autoscaling: {enabled: true}": "a SQLite store is used by one process",
		`store: {url: "sqlite:ringback.db"}`:    "must be in the volume",
		`store: {url: "postgres://db"}`:         "does not match pattern",
		withRedis + "podDisruptionBudget: {minAvailable: 2}": "must be below the 2 replicas of ringback",
		withRedis + "token: {value: short}":                  "does not match pattern",
		withRedis + "affinity: {nodeAffinty: {}}":            "unknown field",
		withRedis + "replica: 2":                             "'replica' not allowed",
		withRedis + "worker: {replicas: several}":            "want integer",
	} {
		_, fault := runChart(t, values)
		require.Contains(t, fault, want, values)
	}
}

func TestChart_DescribesEachValue(t *testing.T) {
	var values yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chartPath+"/values.yaml")), &values))
	var schema document
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chartPath+"/values.schema.json")), &schema))
	properties := schema.at("properties").(document)
	delete(properties, "global") // Helm's
	var compare func(values *yaml.Node, properties document, path string)
	compare = func(values *yaml.Node, properties document, path string) {
		for i := 0; i < len(values.Content); i += 2 {
			name, value := values.Content[i].Value, values.Content[i+1]
			property, isKnown := properties[name].(document)
			require.True(t, isKnown, "the schema has no %s%s", path, name)
			delete(properties, name)
			if property["$ref"] != nil {
				property = document{"properties": maps.Clone(schema.at("$defs/autoscaling/properties").(document))}
			}
			if inner, isObject := property["properties"].(document); isObject {
				compare(value, inner, path+name+"/")
			}
		}
		require.Empty(t, properties, "values.yaml has not all of %s", path)
	}
	compare(values.Content[0], properties, "")
}
