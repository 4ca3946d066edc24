package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// writeTexts writes the licences and the notice of a part into a folder of its name.
func (p *part) writeTexts(folder string) error {
	for name, text := range p.texts {
		path := filepath.Join(folder, strings.Replace(p.path, goPart, "go", 1), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// object is an object of JSON.
type object map[string]any

// writeBill writes sbom.cdx.json beside a binary: what it contains, as a CycloneDX document without a serial number, so
// that the same binary and time (SOURCE_DATE_EPOCH) give the same bytes.
func writeBill(binary, version string, parts []part) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	contained := map[string]string{goPart: strings.TrimPrefix(info.GoVersion, "go")}
	for _, module := range info.Deps {
		contained[module.Path] = module.Version
	}
	var components []object
	for _, p := range parts {
		name, kind, version := p.path, "golang", contained[p.path]
		switch name {
		case goPart:
			name = "std"
		case htmxPart:
			kind, version = "npm", p.version
		}
		if version != "" {
			components = append(components, component("library", kind, name, version, p.licences))
		}
		delete(contained, p.path)
	}
	if len(contained) > 0 {
		return fmt.Errorf("%s contains modules whose licences are not known: %v", binary, contained)
	}
	bill, err := json.MarshalIndent(object{
		"$schema":   "http://cyclonedx.org/schema/bom-1.6.schema.json",
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": object{
			"timestamp": time.Unix(epoch, 0).UTC().Format(time.RFC3339),
			"component": component("application", "golang", info.Main.Path, version, []string{"Apache-2.0"}),
		},
		"components": components,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(binary), "sbom.cdx.json"), append(bill, '\n'), 0o644)
}

// component returns a component of a bill. Its reference is its address among packages (purl).
func component(class, kind, name, version string, licences []string) object {
	url := "pkg:" + kind + "/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	var all []object
	for _, id := range licences {
		key := "id"
		if strings.Contains(id, " ") { // none of SPDX's
			key = "name"
		}
		all = append(all, object{"license": object{key: id}})
	}
	return object{"type": class, "bom-ref": url, "purl": url, "name": name, "version": version, "licenses": all}
}
