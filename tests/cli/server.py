"""Runs each command that it is told in a process of its own, forked from one that has mercer loaded already.

Loading takes a second and more; so the tests can afford a process for everything.
"""

import codecs
import json
import os
import resource
import signal
import sys

import array_api_compat.numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow.csv
import pyarrow.parquet  # noqa: F401
import sklearn.datasets
import sklearn.model_selection  # noqa: F401
from typer.testing import CliRunner

import mercer.cli.kernels
import mercer.cli.training
import mercer.io
import mercer.report.page
import mercer.selection
import mercer.tables  # noqa: F401
from mercer.cli import main
from mercer.cli.commands import app

LIMIT = 100  # seconds


def become(job):
    """Turn into the command: its folder, environment, streams and arguments."""
    signal.alarm(LIMIT)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    for number, (path, flags) in enumerate(
        [(job["stdin"], os.O_RDONLY), (job["stdout"], os.O_WRONLY), (job["stderr"], os.O_WRONLY)]
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    sys.argv = ["mercer", *job["arguments"]]
    sys.dont_write_bytecode = True  # a limit on files would cut that, too
    if job["limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
    if job["nobody"] and os.getuid() == 0:
        codecs.lookup("ascii")  # loaded before the rights to read the modules may be gone
        os.setuid(65534)
    code = 70
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    CliRunner().invoke(app, ["check", "RBF(1)", "-"], input="a\n1\n2\n")  # what a first command loads is there now
    for line in sys.stdin:
        child = os.fork()
        if not child:
            become(json.loads(line))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
