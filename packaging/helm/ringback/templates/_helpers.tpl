{{- define "ringback.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ringback.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $full .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "ringback.selector" -}}
app.kubernetes.io/name: {{ include "ringback.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ringback.labels" -}}
{{ include "ringback.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ringback.sqlite" -}}
{{- if hasPrefix "sqlite:" .Values.store.url }}true{{ end }}
{{- end }}

{{/* The groups of processes by component, each a Deployment. Values that cannot work are refused here. */}}
{{- define "ringback.processes" -}}
{{- $replicas := .Values.replicas | default (ternary 1 2 (eq (include "ringback.sqlite" .) "true")) }}
{{- if not (or .Values.store.url .Values.store.existingSecret) }}
{{- fail "store.url is required: redis://user:password@host:6379/0, or sqlite:/data/ringback.db for one process" }}
{{- end }}
{{- if include "ringback.sqlite" . }}
{{- if or (gt (int $replicas) 1) .Values.worker.enabled .Values.autoscaling.enabled }}
{{- fail "a SQLite store is used by one process: set replicas to 1, without autoscaling and worker, or use Redis" }}
{{- end }}
{{- if not (hasPrefix "sqlite:/data/" .Values.store.url) }}
{{- fail "store.url must be in the volume: sqlite:/data/ringback.db" }}
{{- end }}
{{- end }}
server:
  name: {{ include "ringback.fullname" . }}
  roles: {{ ternary "api" "" .Values.worker.enabled | quote }}
  replicas: {{ $replicas }}
  resources: {{ toJson .Values.resources }}
  autoscaling: {{ toJson .Values.autoscaling }}
{{- if .Values.worker.enabled }}
worker:
  name: {{ include "ringback.fullname" . }}-worker
  roles: worker
  replicas: {{ .Values.worker.replicas }}
  resources: {{ toJson .Values.worker.resources }}
  autoscaling: {{ toJson .Values.worker.autoscaling }}
{{- end }}
{{- end }}

{{/* The variable of a secret. Arguments: the root, the variable, its value, and its key in the chart's Secret. */}}
{{- define "ringback.secretVariable" -}}
{{- $root := index . 0 }}{{ $value := index . 2 -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef:
      name: {{ $value.existingSecret | default (include "ringback.fullname" $root) }}
      key: {{ ternary $value.key (index . 3) (ne $value.existingSecret "") }}
{{- end }}
