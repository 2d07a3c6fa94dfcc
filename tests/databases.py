"""Databases for tests: put a frame, ask a query, get a frame."""

import csv
import glob
import io
import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pandas as pd
import pytest


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def _typed(texts):
    """True and false or numbers, if all are; not by pandas, which does not read every digit in all of its versions."""
    if {*texts} <= {"t", "f"}:
        return [text == "t" for text in texts]
    try:
        return [float(text) for text in texts]
    except ValueError:
        return list(texts)


class Sqlite:
    dialect = "sqlite"

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def put(self, frame, name, types=None):
        """Without types, or with some by column."""
        with_none = frame.astype(object).where(frame.notna(), None)
        columns = ", ".join(f"{quoted(column)} {(types or {}).get(column, '')}" for column in frame)
        self.connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
        marks = ", ".join("?" * frame.shape[1])
        self.connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", with_none.values.tolist())

    def ask(self, query):
        cursor = self.connection.execute(query)
        return pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])

    def close(self):
        self.connection.close()

    __del__ = close  # Python warns of a connection that is left open


class Duckdb:
    dialect = "duckdb"

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()

    def put(self, frame, name, types=None):
        self.connection.register("frame", frame)
        self.connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM frame")
        for column, kind in (types or {}).items():
            self.connection.execute(f"ALTER TABLE {quoted(name)} ALTER {quoted(column)} TYPE {kind}")

    def ask(self, query):
        return self.connection.execute(query).df()

    def close(self):
        self.connection.close()


class Postgres:
    """A server of its own, in a temporary folder, reached through a socket there."""

    dialect = "postgres"

    def __init__(self):
        places = [os.path.dirname(shutil.which("initdb") or ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"))]
        programs = [place for place in places if place and os.path.exists(f"{place}/pg_ctl")]
        if not programs or shutil.which("psql") is None:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        self.programs = programs[-1]
        self.user = {"user": "postgres"} if os.geteuid() == 0 else {}  # it refuses to run as root
        self.folder = tempfile.mkdtemp(prefix="quadboost-postgres-", dir="/tmp")  # a socket's path must be short
        if self.user:
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "--locale=C")
        self._run(
            "pg_ctl", "-D", self._data, "-w", "-o", f"-k {self.folder} -c listen_addresses= -c fsync=off", "start"
        )

    @property
    def _data(self):
        return f"{self.folder}/data"

    def _run(self, program, *arguments):
        command = [f"{self.programs}/{program}", *arguments]
        with open(f"/tmp/{Path(self.folder).name}.log", "w") as log:
            done = subprocess.run(command, cwd="/tmp", stdout=log, stderr=log, stdin=subprocess.DEVNULL, **self.user)
        assert done.returncode == 0, Path(log.name).read_text()

    def psql(self, text, *options):
        command = ["psql", "-h", self.folder, "-U", "postgres", "-X", "-q", "-v", "ON_ERROR_STOP=1", *options]
        done = subprocess.run(command, input=text.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr.decode()[:2000]
        return done.stdout.decode()

    def put(self, frame, name, types=None):
        known = {"b": "boolean", "i": "bigint", "f": "float8"}
        kinds = {column: known.get(frame[column].dtype.kind, "text") for column in frame} | (types or {})
        columns = ", ".join(f"{quoted(column)} {kind}" for column, kind in kinds.items())
        text = frame.to_csv(index=False, header=False, na_rep="\x01")
        self.psql(
            f"DROP TABLE IF EXISTS {quoted(name)};\nCREATE TABLE {quoted(name)} ({columns});\n"
            f"COPY {quoted(name)} FROM STDIN WITH (FORMAT csv, NULL E'\\x01');\n{text}\\.\n"
        )

    def ask(self, query):
        header, *rows = csv.reader(io.StringIO(self.psql(query, "--csv"), newline=""))
        columns = zip(*rows, strict=True) if rows else [()] * len(header)
        return pd.DataFrame(dict(zip(header, map(_typed, columns), strict=True)))

    def close(self):
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder)
        os.remove(f"/tmp/{Path(self.folder).name}.log")
