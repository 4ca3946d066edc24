// Command chart lints a Helm chart with values of the standard input, and prints what it renders as JSON: the texts by
// the names of the templates. Objects that the cluster has, which lookup finds, are in the value "cluster". It fails for
// warnings of the linter, and for fields that the objects of Kubernetes do not have.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	kubeerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart FOLDER <values.yaml")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(folder string, in io.Reader, out io.Writer) error {
	values, err := loader.LoadValues(in)
	if err != nil {
		return err
	}
	has, _ := values["cluster"].(map[string]any)
	delete(values, "cluster")
	var faults []error
	for _, m := range lint.RunAll(folder, values, "test").Messages {
		if m.Severity >= support.WarningSev {
			faults = append(faults, m)
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	release := common.ReleaseOptions{Name: "ringback", Namespace: "test", IsInstall: true}
	top, err := util.ToRenderValues(chart, values, release, nil)
	if err != nil {
		return err
	}
	rendered, err := engine.RenderWithClientProvider(chart, top, cluster{objects: has})
	if err != nil {
		return err
	}
	for name, text := range rendered {
		if !strings.HasSuffix(name, "NOTES.txt") {
			faults = append(faults, checkFields(text))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(rendered)
}

// strict reads objects of Kubernetes, and refuses fields that they do not have.
var strict = kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
	kubejson.SerializerOptions{Yaml: true, Strict: true})

// checkFields fails for objects that Kubernetes would not take as they are. Those of other APIs are not checked.
func checkFields(text string) error {
	for reader := kubeyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if _, _, err := strict.Decode(document, nil, nil); err != nil && !runtime.IsNotRegisteredError(err) {
			return fmt.Errorf("%w:\n%s", err, document)
		}
	}
}

// cluster has objects by name.
type cluster struct {
	dynamic.NamespaceableResourceInterface
	objects map[string]any
}

func (c cluster) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c, true, nil
}

func (c cluster) Namespace(string) dynamic.ResourceInterface { return c }

func (c cluster) Get(
	_ context.Context, name string, _ meta.GetOptions, _ ...string,
) (*unstructured.Unstructured, error) {
	object, found := c.objects[name].(map[string]any)
	if !found {
		return nil, kubeerrors.NewNotFound(schema.GroupResource{}, name)
	}
	return &unstructured.Unstructured{Object: object}, nil
}
