// Package packaging holds what runs Ringback elsewhere: a unit for systemd, manifests and a chart for Kubernetes, alert
// rules and a dashboard, the script that builds a release with its packages. It has no code, only tests that hold these
// files, the Dockerfile and compose.yaml against the real binary and against rules that need neither Docker nor
// Kubernetes.
//
// It does not test whether an image builds, a composition starts or a cluster takes the manifests.
package packaging
