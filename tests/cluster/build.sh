#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kube-apiserver and etcd for tests, built of the modules that go.sum names, once for all checkouts of a machine: build.sh
# builds what is missing, with --kube-scheduler, --kubelet and --kube-controller-manager those, too; build.sh --where says only where it is, or would be.
# With --helm behind it is helm alone, of the modules that helm.sum names: build.sh --helm, build.sh --where --helm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly PROGRAMS=(k8s.io/kubernetes/cmd/kube-apiserver go.etcd.io/etcd/server/v3)
readonly KEPT=${GFLOW_CLUSTER:-${XDG_CACHE_HOME:-$HOME/.cache}/gflow-cluster}

# That of ./dev setup, which is as new as the modules want it, or any that is.
find_go() {
  local go
  for go in ../../.venv/bin/go go /usr/local/go/bin/go; do
    if GOTOOLCHAIN=local "$go" list -m >/dev/null 2>&1; then
      printf '%s\n' "$go"
      return 0
    fi
  done
  printf 'no Go as new as tests/cluster/go.mod wants it (./dev setup)\n' >&2
  return 1
}

# What is compiled takes 2 GB, which go with it; where it was broken off, the next one goes on.
build() {
  local go made=$1
  shift
  go=$(find_go)
  mkdir -p "$made"
  GOCACHE=$made/compiled CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly \
    "$go" build -p "${JOBS:-$(nproc)}" -trimpath -buildvcs=false -ldflags "-s -w" -o "$made/" "$@"
  rm -rf "$made/compiled"
}

# What a kubelet says to a container runtime and to those who give its containers devices, and what it tells of them: all are called api.proto there.
copy_protocols() {
  local go made=$1 name module path
  go=$(find_go)
  mkdir -p "$made"
  while read -r name module path; do
    GOTOOLCHAIN=local "$go" mod download "$module"
    install -m 644 "$(GOTOOLCHAIN=local "$go" list -m -f '{{.Dir}}' "$module")/pkg/apis/$path/api.proto" "$made/$name.proto"
  done <<<"\
runtime k8s.io/cri-api runtime/v1
deviceplugin k8s.io/kubelet deviceplugin/v1beta1
podresources k8s.io/kubelet podresources/v1
dra k8s.io/kubelet dra/v1
drahealth k8s.io/kubelet dra-health/v1alpha1
pluginregistration k8s.io/kubelet pluginregistration/v1"
}

build_missing() {
  local made=$1 program
  shift
  if [[ ${1:-} == --helm ]]; then
    if [[ ! -f $made/helm ]]; then build "$made" -modfile=helm.mod helm.sh/helm/v3/cmd/helm; fi
    return
  fi
  if [[ ! -f $made/complete ]]; then
    build "$made" "${PROGRAMS[@]}"
    mv "$made/server" "$made/etcd"  # it is named after a folder
    touch "$made/complete"
  fi
  for program in "${@#--}"; do
    if [[ ! -f $made/$program ]]; then build "$made" "k8s.io/kubernetes/cmd/$program"; fi
    if [[ $program == kubelet && ! -f $made/protocols/drahealth.proto ]]; then copy_protocols "$made/protocols"; fi
  done
}

main() {
  local key made sums=go.sum
  if [[ ${*: -1} == --helm ]]; then sums=helm.sum; fi
  key=$(sha256sum <"$sums")
  made=$KEPT/${key:0:16}
  if [[ ${1:-} != --where ]]; then
    mkdir -p "$KEPT"
    (
      flock 9  # checkouts that are set up at once wait for each other
      build_missing "$made" "$@"
    ) 9>"$KEPT/lock"
  fi
  printf '%s\n' "$made"
}

main "$@"
