# SPDX-License-Identifier: Apache-2.0
# The two commands of the README on a bare machine: a chroot of Debian with nothing but git, made anew, and a
# clone of the last commit in it. GFLOW_FRESH_CACHE=~/.cache has it take from there, and put there, what compilers
# made and the control plane that the cluster's tests need: everything is installed all the same.
# shellcheck shell=bash

# Removed with --one-file-system: what may be mounted there is not ours.
readonly FRESH_HOME=${GFLOW_FRESH_HOME:-/var/tmp/gflow-fresh}

# The names Debian gives its versions.
fresh_suite() {
  case $1 in
    12) say bookworm ;;
    13) say trixie ;;
    *) die "fresh takes 12 or 13, a version of Debian, not '$1'" ;;
  esac
}

# fresh_root VERSION: a base system with git, kept so that the next run need not fetch it again.
fresh_root() {
  local base=$FRESH_HOME/base-$1
  if [[ ! -f $base/.complete ]]; then
    rm -rf --one-file-system "$base"
    mkdir -p "$FRESH_HOME"
    debootstrap --variant=minbase --include=git,ca-certificates "$(fresh_suite "$1")" "$base" || return 1
    : >"$base/.complete"
  fi
}

# fresh_run VERSION COMMAND...: runs it in the clone, in namespaces of its own: nothing of it outlives the call.
# Its /dev is its own, too, so that nothing done there reaches that of the machine.
fresh_run() {
  local root=$FRESH_HOME/$1
  shift
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --pid --fork --kill-child bash -c '
    set -e
    root=$1; shift
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for node in null:3 zero:5 full:7 random:8 urandom:9 kmsg:11; do mknod -m 666 "$root/dev/${node%:*}" c 1 "${node#*:}"; done
    mknod -m 666 "$root/dev/tty" c 5 0
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for stream in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${stream#*:}" "$root/dev/${stream%:*}"; done
    mount -t tmpfs tmpfs "$root/run"
    if [[ -n ${GFLOW_FRESH_CACHE:-} ]]; then
      mkdir -p "$root/root/.cache"
      mount --bind "$GFLOW_FRESH_CACHE" "$root/root/.cache"
    fi
    # The way to the network is that of the machine: where a proxy signs, its authority is known, too.
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -R /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates"
    network=()
    for name in {http,https,no}_proxy {HTTP,HTTPS,NO}_PROXY SSL_CERT_FILE PIP_CERT PIP_INDEX_URL UV_INDEX_URL GOPROXY; do
      if [[ -v $name ]]; then network+=("$name=${!name}"); fi
    done
    # A root of the namespace, not only of the process: tests make namespaces of their own and enter them.
    cd "$root" && pivot_root . . && umount -l . && cd /
    update-ca-certificates >/dev/null 2>&1
    exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      LANG=C.UTF-8 JOBS="$JOBS" CI="${CI:-}" "${network[@]}" bash -c "cd /root/gflow && exec \"\$@\"" fresh "$@"
  ' fresh "$root" "$@"
}

# fresh VERSION [COMMAND...]: both commands of the README, or the one given: fresh 13 ./dev demo
fresh() {
  local version=${1:-12} root
  [[ $EUID -eq 0 ]] || die "fresh makes a chroot: run it as root"
  have debootstrap || die "debootstrap is missing; run ./dev setup"
  fresh_suite "$version" >/dev/null
  if [[ $# -gt 0 ]]; then shift; fi
  root=$FRESH_HOME/$version
  fresh_root "$version" || die "no base system of Debian $version could be made"
  rm -rf --one-file-system "$root"
  cp -a --reflink=auto "$FRESH_HOME/base-$version" "$root"
  git clone -q --no-hardlinks . "$root/root/gflow"
  if [[ $# -gt 0 ]]; then
    fresh_run "$version" "$@"
    return
  fi
  fresh_run "$version" ./dev demo && fresh_run "$version" env CI=true ./dev test
}
