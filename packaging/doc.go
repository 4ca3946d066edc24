// Package packaging holds what runs Ringback elsewhere: a unit for systemd, manifests for Kubernetes, the script that builds
// a release. It has no code of its own, only tests that hold these files, the Dockerfile and compose.yaml against the real
// binary and against rules that need neither Docker nor Kubernetes.
//
// What it cannot tell is whether an image builds, a composition starts or a cluster takes the manifests.
package packaging
