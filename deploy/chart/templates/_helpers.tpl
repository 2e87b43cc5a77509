{{- define "semblance.name" -}}
{{- if contains "semblance" .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-semblance" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "semblance.selector" -}}
app.kubernetes.io/name: semblance
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "semblance.labels" -}}
{{ include "semblance.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "semblance.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s%s" .Chart.AppVersion (ternary "-gpu" "" .Values.gpu.enabled)) }}
{{- end }}
{{- end }}

{{- /* What answers a request that names no model, in one line. */ -}}
{{- define "semblance.answers" -}}
{{- with .Values.models -}}
source={{ .source }} similarity={{ .defaultSimilarity }} rank={{ .defaultRank }} entailment={{ .defaultEntailment }} revision={{ .revision }}
{{- end }}
{{- end }}

{{- /* RollingUpdate, or Recreate where two versions side by side would answer with scores of two models. */ -}}
{{- define "semblance.update" -}}
{{- if ne .Values.update.type "auto" }}{{ .Values.update.type }}
{{- else }}
{{- $before := .Values.update.before }}
{{- if not $before }}
{{- $live := lookup "apps/v1" "Deployment" .Release.Namespace (include "semblance.name" .) }}
{{- $before = dig "metadata" "annotations" "semblance/answers" "" $live }}
{{- end }}
{{- if and $before (ne $before (include "semblance.answers" .)) }}Recreate{{ else }}RollingUpdate{{ end }}
{{- end }}
{{- end }}

{{- /* A number as it was written: Helm's are floating-point, and 4194304 would become 4.194304e+06. */ -}}
{{- define "semblance.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- define "semblance.hardened" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{- define "semblance.hardenedPod" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}
