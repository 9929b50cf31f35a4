{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* By what the objects of a scheduler differ from those of another: "" of gflow, "-NAME" of NAME. */ -}}
{{- define "gflow-kube.suffix" -}}
{{- if ne .Values.schedulerName "gflow" }}-{{ .Values.schedulerName }}{{ end }}
{{- end }}

{{- /* What it is called in its cluster, as its Lease is: name_in_cluster() of src/kube/limits.h. */ -}}
{{- define "gflow-kube.name" -}}
gflow-kube{{ include "gflow-kube.suffix" . }}
{{- end }}

{{- /* What belongs to all who have the annotation rather than to the program: policies, and who looks at them. */ -}}
{{- define "gflow-kube.family" -}}
gflow{{ include "gflow-kube.suffix" . }}
{{- end }}

{{- /* By which the pods of the scheduler are found, and no others: what else the chart runs has another name. It cannot change in an upgrade. */ -}}
{{- define "gflow-kube.selector" -}}
app.kubernetes.io/name: gflow-kube
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gflow-kube.labels" -}}
{{ include "gflow-kube.selector" . }}
{{ include "gflow-kube.release" . }}
{{- end }}

{{- /* The same of gflow-device-plugin, which is once in a cluster, whatever schedulers there are. */ -}}
{{- define "gflow-kube.plugin.selector" -}}
app.kubernetes.io/name: gflow-device-plugin
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gflow-kube.plugin.labels" -}}
{{ include "gflow-kube.plugin.selector" . }}
{{ include "gflow-kube.release" . }}
{{- end }}

{{- /* The same of gflow-dra-driver. */ -}}
{{- define "gflow-kube.driver.selector" -}}
app.kubernetes.io/name: gflow-dra-driver
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gflow-kube.driver.labels" -}}
{{ include "gflow-kube.driver.selector" . }}
{{ include "gflow-kube.release" . }}
{{- end }}

{{- /* The same of the webhook, one of each scheduler. */ -}}
{{- define "gflow-kube.webhook.selector" -}}
app.kubernetes.io/name: gflow-kube-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gflow-kube.webhook.labels" -}}
{{ include "gflow-kube.webhook.selector" . }}
{{ include "gflow-kube.release" . }}
{{- end }}

{{- /* Labels of all objects. */ -}}
{{- define "gflow-kube.release" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gflow-kube.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* The scheduler, as subjects of bindings have it. */ -}}
{{- define "gflow-kube.subjects" -}}
- kind: ServiceAccount
  name: {{ include "gflow-kube.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* Fails where the cluster has no such API. Asked of no cluster (helm template), its version says: dict "root" $ "value" "..." "api" "..." "version" "1.36" */ -}}
{{- define "gflow-kube.needs" -}}
{{- $cluster := .root.Capabilities }}
{{- if not (or ($cluster.APIVersions.Has .api) (semverCompare (printf ">=%s.0-0" .version) $cluster.KubeVersion.Version)) }}
{{- fail (printf "%s needs %s, which Kubernetes has since %s, and this is %s: set it to false" .value .api .version $cluster.KubeVersion.Version) }}
{{- end }}
{{- end }}
