"""Code of a definition file that leaves a process behind: without the loader's group, session or
parent.
"""

DETACHED = """
import os, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        with open({file!r}, "w") as file:
            file.write(str(os.getpid()))
        os.write(writing, b"1")
        time.sleep(600)
    os._exit(0)
os.wait()
os.read(reading, 1)
"""
