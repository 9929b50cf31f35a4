# SPDX-License-Identifier: Apache-2.0
"""gbatch is linked whole: what would load a library of the machine into it, beside the C library it has, is not in it."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from machine import BIN, PATIENCE

# By these, accounts and hosts are looked up in whatever /etc/nsswitch.conf names.
LOOKUPS = {
    "getpwnam", "getpwnam_r", "getpwuid", "getpwuid_r", "getgrnam", "getgrnam_r", "getgrgid", "getgrgid_r", "getgrouplist",
    "getaddrinfo", "gethostbyname", "gethostbyname_r", "getservbyname", "getservbyname_r", "__nss_lookup", "__nss_module_load",
}

# Accounts that a directory service would know.
MODULE = r"""
#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <stdio.h>

enum nss_status _nss_gflowtest_getpwuid_r(uid_t uid, struct passwd* entry, char* buffer, size_t size, int* error) {
  if (uid != 54321) return NSS_STATUS_NOTFOUND;
  static char home[] = "HOME_OF_IT", name[] = "faraway", none[] = "";
  *entry = (struct passwd){.pw_name = name, .pw_passwd = none, .pw_uid = uid, .pw_gid = uid, .pw_gecos = none, .pw_dir = home,
                           .pw_shell = none};
  (void)buffer, (void)size, (void)error;
  return NSS_STATUS_SUCCESS;
}
"""

SCRIPT = """
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
unset HOME XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME GFLOW_SOCKET
export LD_LIBRARY_PATH=$1
exec setpriv --reuid=54321 --regid=54321 --clear-groups "${@:2}"
"""


def test_nothing_in_gbatch_loads_libraries():
    headers = subprocess.run(["readelf", "--program-headers", BIN / "gbatch"], capture_output=True, text=True, check=True).stdout
    if " INTERP " in headers:
        pytest.skip("gbatch is not linked whole here: there is no libc.a, or it is built with sanitizers")
    symbols = subprocess.run(["nm", BIN / "gbatch"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    assert "main" in names, "stripped: nothing can be seen"
    assert names & LOOKUPS == set()


@pytest.fixture
def place():
    """That any user can read."""
    made = Path(tempfile.mkdtemp(prefix="gflow-nss-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def copied(place, *programs):
    """Where others can run them: what was built may be below a home of root's."""
    directory = Path(tempfile.mkdtemp(dir=place))
    directory.chmod(0o755)
    return [shutil.copy(BIN / program, directory) for program in programs]


def test_without_a_home_gbatch_asks_whoever_knows_accounts(place):
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    (place / "nsswitch.conf").write_text("passwd: files gflowtest\ngroup: files\nhosts: files\n")
    (place / "module.c").write_text(MODULE.replace("HOME_OF_IT", str(place / "far")))
    built = ["cc", "-shared", "-fPIC", "-o", place / "libnss_gflowtest.so.2", place / "module.c"]
    subprocess.run(built, check=True, timeout=PATIENCE)

    def said(*command):
        ran = subprocess.run(["unshare", "--mount", "bash", "-c", SCRIPT, "bash", place, *command],
                             capture_output=True, text=True, timeout=PATIENCE, check=False, cwd="/")
        if "mount:" in ran.stderr or "unshare:" in ran.stderr:
            pytest.skip(f"no mount namespace here: {ran.stderr}")
        return ran.returncode, ran.stdout, ran.stderr

    gbatch, gflow = copied(place, "gbatch", "gflow")
    code, out, err = said(gbatch, "--gpus", "1", "true")
    assert f"gflowd does not answer at {place}/far/.local/share/gflow/run/gflowd.sock" in err, (code, out, err)
    assert (code, out, err) == said(gflow, "gbatch", "--gpus", "1", "true")


def test_who_has_no_home_anywhere_is_told_to_set_one(place):
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    for program in (copied(place, "gbatch"), [*copied(place, "gflow"), "gbatch"]):  # beside no gflow
        ran = subprocess.run(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin", *program,
                              "--gpus", "1", "true"],
                             capture_output=True, text=True, timeout=PATIENCE, check=False, cwd="/")
        assert ran.returncode == 4, ran
        assert "set HOME, as this machine knows no home directory of uid 54321" in ran.stderr, ran
