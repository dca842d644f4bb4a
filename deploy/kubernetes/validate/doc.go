// Package validate checks the manifests of the folder above against the types and the
// OpenAPI schema of Kubernetes. It is a module of its own, so that nobody who builds
// Lately downloads Kubernetes' types.
package validate
