package packaging

import (
	"path/filepath"
	"testing"
)

const manifests = "kubernetes"

// The manifests, with the fields of the API that they may use: one that is misspelt would be refused, or passed over.
type (
	head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
	}
	metadata struct {
		Name   string
		Labels map[string]string
	}
	selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	deployment struct {
		head `yaml:",inline"`
		Spec struct {
			Replicas int
			Selector selector
			Strategy struct {
				Type          string
				RollingUpdate struct {
					MaxSurge       int  `yaml:"maxSurge"`
					MaxUnavailable *int `yaml:"maxUnavailable"`
				} `yaml:"rollingUpdate"`
			}
			Template struct {
				Metadata metadata
				Spec     pod
			}
		}
	}
	pod struct {
		AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
		EnableServiceLinks            *bool `yaml:"enableServiceLinks"`
		TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
		SecurityContext               struct {
			RunAsNonRoot   bool `yaml:"runAsNonRoot"`
			RunAsUser      int  `yaml:"runAsUser"`
			RunAsGroup     int  `yaml:"runAsGroup"`
			SeccompProfile struct {
				Type string
			} `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		TopologySpreadConstraints []struct {
			MaxSkew           int      `yaml:"maxSkew"`
			TopologyKey       string   `yaml:"topologyKey"`
			WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
			LabelSelector     selector `yaml:"labelSelector"`
		} `yaml:"topologySpreadConstraints"`
		Containers []container
	}
	container struct {
		Name  string
		Image string
		Args  []string
		Env   []struct {
			Name      string
			Value     string
			ValueFrom struct {
				SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		}
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		StartupProbe    probe `yaml:"startupProbe"`
		ReadinessProbe  probe `yaml:"readinessProbe"`
		LivenessProbe   probe `yaml:"livenessProbe"`
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
	}
	probe struct {
		HTTPGet struct {
			Path string
			Port string
		} `yaml:"httpGet"`
		PeriodSeconds    int `yaml:"periodSeconds"`
		TimeoutSeconds   int `yaml:"timeoutSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
	service struct {
		head `yaml:",inline"`
		Spec struct {
			Selector map[string]string
			Ports    []struct {
				Name       string
				Port       int
				TargetPort string `yaml:"targetPort"`
			}
		}
	}
	disruption struct {
		head `yaml:",inline"`
		Spec struct {
			MinAvailable               int    `yaml:"minAvailable"`
			UnhealthyPodEvictionPolicy string `yaml:"unhealthyPodEvictionPolicy"`
			Selector                   selector
		}
	}
	secret struct {
		head       `yaml:",inline"`
		Type       string
		StringData map[string]string `yaml:"stringData"`
	}
	kustomization struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Resources  []string
		Images     []struct {
			Name    string
			NewName string `yaml:"newName"`
			NewTag  string `yaml:"newTag"`
		}
	}
)

// manifest reads one of the manifests.
func manifest[T any](t *testing.T, name string) T {
	t.Helper()
	var m T
	readYAML(t, filepath.Join(manifests, name), &m)
	return m
}
