"""python.py - what t/python.sh runs in an interpreter of its own.

  own                   the tests below
  suite LAYER PART      Python's own test_subprocess: one class of it, or "others"
  start LAYER N OPEN KIND  starts N programs with OPEN descriptors open; KIND: plain, or
                        with pipes
  wait LAYER            waits for a child, with a time limit
  ticks LAYER           starts a program while another thread counts

LAYER: 0, Python's own; 1, programs are started by wean; 2, and Popen is wean's too.
"""
import _posixsubprocess
import fcntl
import multiprocessing
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import wean_subprocess

KID = os.environ["WEAN_KID"]

# Tests of test_subprocess that fail: each has to, and for the reason that is given.
EXCEPTIONS = {
    (2, "test_stopped"):
        "puts a function of its own in the place of os.waitpid, which is not called",
}


def install(layer):
    if layer:
        wean_subprocess.install(popen=layer == 2)


# ---- our own tests -----------------------------------------------------------


class Start(unittest.TestCase):
    def raw(self, program, cwd=None, keep=()):
        """The bytes in the pipe, and how the child ended."""
        report = os.pipe()
        late = (-1,) if sys.version_info >= (3, 11) else ()
        pid = _posixsubprocess.fork_exec(
            [program], [program], True, tuple(sorted((*keep, report[1]))), cwd, None,
            -1, -1, -1, -1, -1, -1, *report, True, False, *late, None, None, None, -1,
            None, *((True,) if late else ()))
        os.close(report[1])
        with open(report[0], "rb") as file:
            return file.read(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_errors_have_the_form_of_the_original(self):
        for case in ((b"/missing",), (b"/bin/sh", "/missing"),
                     (b"/bin/sh", None, (999,))):
            ours = self.raw(*case)
            _posixsubprocess.fork_exec = wean_subprocess.fork_exec.args[0]
            try:
                self.assertEqual(ours, self.raw(*case))
            finally:
                wean_subprocess.install()

    def test_a_missing_directory_is_not_a_missing_program(self):
        for program, directory, name in (("/missing", "/", "/missing"),
                                         (KID, "/nowhere", "/nowhere")):
            with self.assertRaises(FileNotFoundError) as caught:
                subprocess.Popen([program], cwd=directory)
            self.assertEqual(caught.exception.filename, name)

    def test_a_start_that_failed_leaves_nothing(self):
        before = os.listdir("/proc/self/fd")
        for _ in range(3):
            with self.assertRaises(OSError):
                subprocess.Popen(["/missing"], stdin=-1, stdout=-1, stderr=-1)
        self.assertEqual(os.listdir("/proc/self/fd"), before)
        try:
            self.assertIsNone(os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG))
        except ChildProcessError:
            pass

    def test_what_no_child_came_of_is_raised(self):
        with self.assertRaises(OSError) as caught:
            subprocess.Popen([KID], user=2**32 - 1)
        self.assertEqual(caught.exception.strerror, "Invalid argument")

    def test_preexec_fn_is_called(self):
        child = subprocess.Popen([KID, "ids"], preexec_fn=lambda: os._exit(5))
        self.assertEqual(child.wait(), 5)

    @unittest.skipIf(sys.version_info < (3, 11), "no process_group")
    def test_the_kernel_refuses_a_group_after_a_session(self):
        with self.assertRaises(PermissionError):
            subprocess.Popen([KID], start_new_session=True, process_group=0)

    def test_a_search_goes_past_what_cannot_be_executed(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in (("a", "no program"), ("b", "#!/bin/sh\nexit 7\n")):
                os.mkdir(os.path.join(directory, name))
                path = os.path.join(directory, name, "program")
                with open(path, "w") as file:
                    file.write(text)
                os.chmod(path, 0o755)
            path = os.pathsep.join(os.path.join(directory, name) for name in "ab")
            self.assertEqual(subprocess.call(["program"], env={"PATH": path}), 7)

    @unittest.skipIf(os.geteuid(), "for root")
    def test_the_directory_is_entered_before_ids_change(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, stat.S_IRWXU)
            self.assertEqual(
                subprocess.call(["/bin/sh", "-c", ":"], cwd=directory, user=65534), 0)

    def test_the_environment_is_that_of_the_start(self):
        os.environ["WEAN_WORD"] = "here"
        self.assertIn(b"WEAN_WORD=here\n", subprocess.check_output(["/usr/bin/env"]))
        self.assertEqual(subprocess.check_output(["/usr/bin/env"], env={}), b"")

    def test_multiprocessing_is_turned_over(self):
        child = multiprocessing.get_context("spawn").Process(target=os.getpid)
        child.start()
        child.join()
        self.assertEqual(child.exitcode, 0)


class Popen(unittest.TestCase):
    def start(self, *words, **options):
        return wean_subprocess.Popen([KID, *words], **options)

    def test_a_status_is_that_of_subprocess(self):
        self.assertEqual(self.start("exit", "3").wait(), 3)
        self.assertEqual(self.start("kill", "9").wait(), -9)

    def test_a_limit_ends_a_wait_and_not_the_child(self):
        with self.start("pause") as child:
            with self.assertRaises(subprocess.TimeoutExpired):
                child.wait(timeout=0.01)
            self.assertIsNone(child.poll())
            child.kill()
            self.assertEqual(child.wait(timeout=60), -signal.SIGKILL)
            child.kill()

    def test_nothing_is_lost_when_communicate_is_called_again(self):
        data, times = os.urandom(1 << 20), 0
        with self.start("sleep", "50", "--then", "tee", "--then", "sleep", "50",
                        stdin=-1, stdout=-1, stderr=-1) as child:
            out = None
            given = data
            while out is None:
                try:
                    out, err = child.communicate(given, timeout=0.01)
                except subprocess.TimeoutExpired:
                    given = None
                    times += 1
        self.assertGreater(times, 1)
        self.assertEqual((out, err), (data, data))

    def test_an_input_is_the_callers_again(self):
        data = bytearray(b"some")
        with self.start("cat", stdin=-1, stdout=-1, stderr=-1) as child:
            self.assertEqual(child.communicate(data), (b"some", b""))
            data.append(0)

    def test_an_interrupted_flush_loses_nothing(self):
        def interrupt(*_):
            raise InterruptedError

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            with self.start("sleep", "200", "--then", "cat", stdin=-1, stdout=-1) as child:
                fcntl.fcntl(child.stdin, fcntl.F_SETPIPE_SZ, 4096)
                os.write(child.stdin.fileno(), b"x" * 4096)
                child.stdin.write(b"y")
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with self.assertRaises(InterruptedError):
                    child.communicate(b"end")
                out, _ = child.communicate()
                self.assertEqual(out, b"x" * 4096 + b"yend")
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_an_interruption_at_the_end_loses_nothing(self):
        def interrupt(*_):
            raise ZeroDivisionError

        def trip():
            time.sleep(0.05)
            signal.pthread_kill(threading.get_ident(), signal.SIGALRM)
            with open(to, "wb") as file:
                file.write(b"said")

        before = signal.signal(signal.SIGALRM, interrupt)
        source, to = os.pipe()
        thread = threading.Thread(target=trip)  # its signal does not end the call
        try:
            with open(source) as file, self.start(
                    "cat", stdin=file, stdout=-1, stderr=-1) as child:
                with self.assertRaises(ZeroDivisionError):
                    thread.start()
                    child.communicate()
                self.assertEqual(child.communicate(), (b"said", b""))
            thread.join()
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_what_came_until_the_limit_is_told(self):
        with self.start("echo", "begun", "--then", "pause",
                        stdout=-1, text=True) as child:
            out = None
            while out is None:
                with self.assertRaises(subprocess.TimeoutExpired) as caught:
                    child.communicate(timeout=0.01)
                out = caught.exception.output
            child.terminate()
            self.assertEqual(child.communicate(), ("begun\n", None))
        self.assertEqual(out, b"begun\n")
        self.assertEqual(caught.exception.args, (child.args, 0.01))

    def test_communicate_works_after_a_wait(self):
        with self.start("echo", "said", stdout=-1, stderr=-1) as child:
            child.wait()
            self.assertEqual(child.communicate(), (b"said\n", b""))

    def test_an_output_that_was_closed_is_empty(self):
        with self.start("sleep", "1", stdin=-1, stdout=-1, stderr=-1) as child:
            child.stdout.close()
            self.assertEqual(child.communicate(b"input"), (b"", b""))

    def test_a_limit_may_be_infinite(self):
        self.assertEqual(self.start("exit", "2").wait(timeout=float("inf")), 2)

    def test_a_handler_runs_during_a_wait(self):
        def interrupt(*_):
            raise InterruptedError

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for call in "wait", "communicate":
                with self.start("pause", stdout=-1, stderr=-1) as child:
                    signal.setitimer(signal.ITIMER_REAL, 0.05)
                    with self.assertRaises(InterruptedError):
                        getattr(child, call)()
                    child.kill()
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_many_threads_wait_for_one_child(self):
        seen = []
        with self.start("sleep", "50", "--then", "exit", "4") as child:
            threads = [threading.Thread(target=lambda: seen.append(child.wait()))
                       for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(seen, [4] * 8)

    def test_a_child_that_is_over_holds_no_descriptor(self):
        before = len(os.listdir("/proc/self/fd"))
        children = [self.start("exit", "0") for _ in range(5)]
        for child in children:
            child.wait()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_status_that_nobody_knows_is_not_invented(self):
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            self.assertIn(self.start("exit", "3").wait(), (3, 255))
        finally:
            signal.signal(signal.SIGCHLD, before)


def own():
    install(1)
    unittest.main(argv=["python.py"], verbosity=2, warnings="error")


# ---- test_subprocess ---------------------------------------------------------


def suite(layer, part):
    layer = int(layer)
    install(layer)
    os.chdir(tempfile.mkdtemp(dir="."))
    from test import test_subprocess

    parts = ("ProcessTestCase", "ProcessTestCaseNoPoll", "POSIXProcessTestCase")
    tests = unittest.TestSuite()
    for group in unittest.defaultTestLoader.loadTestsFromModule(test_subprocess):
        for test in group:
            name = type(test).__name__
            if name == part or (part == "others" and name not in parts):
                tests.addTest(test)
                reason = EXCEPTIONS.get((layer, test._testMethodName))
                if reason:
                    print("to fail: {}: {}".format(test.id(), reason))
                    test.__unittest_expecting_failure__ = True
    result = unittest.TextTestRunner().run(tests)
    print("figures", result.testsRun, len(result.failures) + len(result.errors)
          + len(result.unexpectedSuccesses), len(result.skipped),
          len(result.expectedFailures))
    sys.exit(not result.wasSuccessful())


# ---- what strace counts ------------------------------------------------------


def start(layer, n, descriptors, kind):
    install(int(layer))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (1024 if hard == -1 else min(1024, hard), hard))
    while os.open("/dev/null", os.O_RDONLY) < int(descriptors) - 1:
        pass
    pipes = {"stdin": -1, "stdout": -1, "stderr": -1} if kind == "pipes" else {}
    for _ in range(int(n)):
        subprocess.Popen([KID, "exit", "0"], **pipes).communicate()


def wait(layer):
    install(int(layer))
    subprocess.Popen([KID, "sleep", "500"]).wait(timeout=60)


def ticks(layer):
    install(int(layer))
    over, seen = threading.Event(), []

    def tick():
        while not over.wait(0.01):
            seen.append(None)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(seen)
    child = subprocess.Popen([KID, "exit", "0"])
    print(len(seen) - before)
    over.set()
    thread.join()
    child.wait()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
