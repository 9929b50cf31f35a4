# SPDX-License-Identifier: Apache-2.0
"""The choice of packages in tools/dev/setup.sh, with an apt-cache that writes much and slowly."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Prints more than a pipe holds after the line that decides.
APT_CACHE = r"""#!/usr/bin/env bash
case $2 in libboost1.83-dev | libboost-dev) version=1.83.0-4.2 ;; *) version='(none)' ;; esac
printf '%s:\n  Installed: (none)\n  Candidate: %s\n  Version table:\n' "$2" "$version"
for ((i = 0; i < 1200; i++)); do printf '     1.83.0-%d 500 a line as long as that of an archive of packages is\n' "$i"; done
"""
DPKG_QUERY = "#!/usr/bin/env bash\nexit 1\n"


@pytest.fixture
def fake_debian(tmp_path):
    for name, text in (("apt-cache", APT_CACHE), ("dpkg-query", DPKG_QUERY)):
        program = tmp_path / name
        program.write_text(text)
        program.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_the_first_alternative_that_can_be_had_is_chosen_every_time(fake_debian):
    script = f"""set -euo pipefail
        cd {ROOT}; have() {{ command -v "$1" >/dev/null; }}; say() {{ printf '%s\\n' "$*"; }}
        source tools/dev/setup.sh
        for i in $(seq 100); do wanted_package "libboost1.81-dev libboost1.83-dev libboost-dev"; done"""
    run = subprocess.run(["bash", "-c", script], env=fake_debian, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["libboost1.83-dev"] * 100


def test_what_it_does_not_know_it_does_not_take_for_all(fake_debian):
    ran = subprocess.run([ROOT / "dev", "setup", "biuld"], env=fake_debian, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "dev: setup: 'biuld' is nothing to set up; 'build' is what compiling needs, and without a word it is all\n"


def test_no_script_asks_grep_behind_a_pipe():
    scripts = [ROOT / "dev", ROOT / ".ci/run", *ROOT.glob("tools/**/*.sh")]
    found = [
        f"{path.name}: {line}"
        for path in scripts
        for line in path.read_text().splitlines()
        if "| grep -q" in line
    ]
    assert found == []


def pins(path):
    """What a file has as name==version, without extras, markers and hashes."""
    return set(re.findall(r"(?m)^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?(==[^\s;]+)", path.read_text()))


@pytest.mark.parametrize("name", ["python", "frameworks"])
def test_a_lock_has_what_it_is_made_from(name):
    """Which says how it is made."""
    wanted, locked = (pins(ROOT / f"tools/dev/{name}.{kind}") for kind in ("in", "lock"))
    assert wanted and wanted <= locked, f"make tools/dev/{name}.lock anew: {sorted(wanted - locked)}"


def test_the_package_is_built_with_what_tests_build_it_with():
    build = re.search(r"(?m)^requires = \[(.*)\]$", (ROOT / "pyproject.toml").read_text())[1]
    assert set(re.findall(r'"([^"=]+)(==[^"]+)"', build)) <= pins(ROOT / "tools/dev/python.in"), build
