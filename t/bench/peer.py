# peer.py PIPES MB PROGRAM ARGUMENT... - for each line "N" that it reads, N starts by
# subprocess, and a line "NS BLOCKED-NS" for each.
import subprocess
import sys
from time import monotonic_ns as now

pipes, mb, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
memory = bytearray(b"\1") * (mb << 20)
ends = {}
if pipes:
    ends["stdout"] = subprocess.PIPE
if pipes == 3:
    ends["stdin"] = ends["stderr"] = subprocess.PIPE


def start():
    begin = now()
    p = subprocess.Popen(argv, **ends)
    started = now()
    out, err = p.communicate()
    if p.returncode or len(out or b"") != (pipes > 0) or err:
        sys.exit("the program said something else")
    return f"{now() - begin} {started - begin}\n"


for line in sys.stdin:
    print("".join([start() for _ in range(int(line))]), end="", flush=True)
