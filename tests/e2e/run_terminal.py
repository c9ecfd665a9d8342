# SPDX-License-Identifier: MIT
"""A program that writes down each signal, and a terminal with a job in it, for run_signals.test.

run_terminal.py program LOG [handled|group]
run_terminal.py interrupt|stop|handled|group COMMAND LOG
"""
import os
import pty
import signal
import sys
import time

STATUS = 7
NOTE = signal.SIGRTMIN + 3  # these two are queued: two are never taken for one
END = signal.SIGRTMIN + 5


# ---- the program ----

def note(log, word):
    with open(log, "a", encoding="ascii") as file:
        file.write(word + "\n")


def short_name(number):
    try:
        return signal.Signals(number).name[3:]
    except ValueError:
        return "RTMIN+%d" % (number - signal.SIGRTMIN)


def program(log, scene=""):
    """Writes down what comes until SIGTERM, END, or the end of a terminal does. SIGTSTP stops it as
    always in the scene `stop`."""
    numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
               signal.SIGALRM, signal.SIGWINCH, signal.SIGTERM, NOTE, END]
    if scene != "stop":
        numbers.append(signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    note(log, "ready %d" % os.getpid())
    if scene == "group":
        os.kill(0, NOTE)
    while True:
        number = signal.sigwait(numbers)
        note(log, short_name(number))
        if number in (signal.SIGTERM, END) or (scene and number == signal.SIGHUP):
            sys.exit(STATUS)


# ---- the terminal ----

def fail(text):
    print("FAIL: " + text)
    sys.exit(1)


def lines_of(log):
    try:
        with open(log, encoding="ascii") as file:
            return file.read().split("\n")
    except FileNotFoundError:
        return []


def wait_for(log, word):
    while not any(line.split(" ")[0] == word for line in lines_of(log)):
        time.sleep(0.02)


def start_job(command, log, scene):
    """As a shell does: a process group of its own, in the foreground of a terminal."""
    leader, terminal = pty.openpty()
    os.setsid()
    name = os.ttyname(terminal)
    os.close(terminal)
    terminal = os.open(name, os.O_RDWR)  # it becomes the session's
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(command, [command, "run", sys.executable, __file__, "program", log, scene])
    wait_for(log, "ready")
    program_id = int(next(line for line in lines_of(log) if line.startswith("ready")).split()[1])
    return leader, job, program_id


def state_of(process):
    with open("/proc/%d/stat" % process, encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0]


def end(job, log, word, number=signal.SIGTERM):
    """What is passed on at all is passed on before this one, whose number is higher."""
    os.kill(job, number)
    _, status = os.waitpid(job, os.WUNTRACED)
    if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != STATUS:
        fail("wait status %#x" % status)
    count = lines_of(log).count(word)
    if count != 1:
        fail("%s came %d times" % (word, count))


def stop_and_go_on(leader, job, process):
    os.write(leader, b"\x1a")
    _, status = os.waitpid(job, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        fail("wait status %#x, not stopped" % status)
    while state_of(process) != "T":
        time.sleep(0.02)
    if state_of(job) != "T":
        fail("the command is not stopped")


def main(scene, command, log):
    leader, job, process = start_job(command, log, scene)
    if scene == "interrupt":
        os.write(leader, b"\x03")
        wait_for(log, "INT")
        end(job, log, "INT")
    elif scene == "stop":
        stop_and_go_on(leader, job, process)
        os.killpg(job, signal.SIGCONT)  # as `fg` does
        while state_of(process) == "T" or state_of(job) == "T":
            time.sleep(0.02)
        stop_and_go_on(leader, job, process)
        os.kill(job, signal.SIGCONT)  # whoever knows only the command
        while state_of(process) == "T" or state_of(job) == "T":
            time.sleep(0.02)
        end(job, log, "TERM")
    elif scene == "handled":  # the program does not stop, and so nobody does
        os.write(leader, b"\x1a")
        wait_for(log, "TSTP")
        end(job, log, "TSTP", END)
    else:
        wait_for(log, "RTMIN+3")
        end(job, log, "RTMIN+3", END)
    print("as it should be")


if __name__ == "__main__":
    if sys.argv[1] == "program":
        program(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
