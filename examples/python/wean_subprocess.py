"""Python's subprocess, on wean.

    import wean_subprocess
    wean_subprocess.install()

It needs the module _wean, which _weanmodule.c tells how to compile.  From then on programs
are started by wean, for whoever uses subprocess or multiprocessing.  install(popen=True)
also lets Popen wait, communicate and kill by it: a time limit sleeps until the child is
over instead of looking every now and then, and a signal never reaches another process.
wean_subprocess.Popen alone is such a Popen.

Python's own fork_exec is called where there is a preexec_fn, or a process group for a new
session, which the kernel refuses; and again where it may find what wean did not: a
directory that only the old user may enter, a program behind one that cannot be executed.

A child of which nobody can tell how it ended, since SIGCHLD is ignored or somebody else
waited for it, gives Popen 255, and not 0.
"""
import _posixsubprocess
import functools
import math
import subprocess
import time

import _wean

_Popen = subprocess.Popen
# Since 3.13 subprocess tells a directory that could not be entered from other failures.
_marks = _Popen._execute_child.__code__.co_consts
fork_exec = functools.partial(
    _wean.fork_exec, _posixsubprocess.fork_exec,
    b"noexec:chdir" if "noexec:chdir" in _marks else b"noexec")


def install(popen=False):
    _posixsubprocess.fork_exec = fork_exec  # for 3.10, and multiprocessing
    subprocess._fork_exec = fork_exec
    subprocess._USE_POSIX_SPAWN = False
    if popen:
        subprocess.Popen = Popen


def _left(end):
    """Milliseconds, as wean counts them."""
    if end is None:
        return -1
    return math.ceil(min(max(0, end - time.monotonic()) * 1000, 2**31 - 1))


def _number(file):
    return file.fileno() if file and not file.closed else -1


class Popen(_Popen):
    _child = None  # before the start
    _is_attached = False

    def _execute_child(self, *args, **kwargs):
        super()._execute_child(*args, **kwargs)
        try:
            self._child = _wean.Child(self.pid)
        except ProcessLookupError:
            self.returncode = 255

    def _look(self, ms):
        if self.returncode is None:
            code = self._child.wait(ms)
            if code is not None:  # another thread may know it by now
                self.returncode = code
        return self.returncode

    def _internal_poll(self, *args, **kwargs):
        return self._look(0) if self._child else super()._internal_poll(*args, **kwargs)

    def _wait(self, timeout):
        end = None if timeout is None else time.monotonic() + timeout
        while self._look(_left(end)) is None:
            if _left(end) == 0:
                raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, sig):
        if self.poll() is None:
            try:
                self._child.kill(sig)
            except ProcessLookupError:
                pass

    def _communicate(self, input, endtime, orig_timeout):
        if not self._child:
            return super()._communicate(input, endtime, orig_timeout)
        if not self._is_attached:
            self._attach(input)
        done = False
        while not done:
            # To wean 0 is no limit at all.
            done, out, err = self._child.communicate(_left(endtime) or 1)
            if not done and _left(endtime) == 0:
                raise subprocess.TimeoutExpired(
                    self.args, orig_timeout, output=out or None, stderr=err or None)
        return self._finish(self.stdout, out), self._finish(self.stderr, err)

    def _attach(self, input):
        if self.stdin:
            self._save_input(input)
            try:
                self.stdin.flush()
            except BrokenPipeError:
                pass
        self._child.attach(self._input or b"", _number(self.stdin) if self._input else -1,
                           _number(self.stdout), _number(self.stderr))
        self._is_attached = True
        if self.stdin:
            try:
                self.stdin.close()
            except BrokenPipeError:
                pass

    def _finish(self, file, data):
        if not file:
            return None
        file.close()
        data = data or b""
        if self.text_mode:
            return self._translate_newlines(data, file.encoding, file.errors)
        return data
