# SPDX-License-Identifier: MIT
"""A server whose workers are forked before the first request. It answers eight, and is told to end.
`leak`: a request keeps a block."""
import http.client
import os
import signal
import socket
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))


def application(environment, start_response):
    import device
    if not application.__dict__.setdefault("started", []):
        device.start()
        application.started.append(True)
    if environment["PATH_INFO"] == "/keep":
        device.allocate(100000)
    answer = str(device.work()).encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


class Connection(http.client.HTTPConnection):
    def connect(self):
        while True:
            self.sock = socket.socket(socket.AF_UNIX)
            try:
                return self.sock.connect("server.sock")
            except ConnectionRefusedError:  # it has its name before it listens
                self.sock.close()
                if server.poll() is not None:
                    raise
                time.sleep(0.02)


def ask(path):
    connection = Connection("localhost")
    connection.request("GET", path)
    return connection.getresponse().read().decode()


def main(arguments):
    global server
    server = subprocess.Popen([sys.executable, "-m", "gunicorn", "--workers", "2", "--bind", "unix:server.sock",
                               "--log-level", "error", "--timeout", "600", "--graceful-timeout", "600", "--no-control-socket", "--pythonpath", here, "run_gunicorn:application"])
    while not os.path.exists("server.sock") and server.poll() is None:
        time.sleep(0.02)
    print([ask("/") for _ in range(8)], ask("/keep") if arguments == ["leak"] else "")
    server.send_signal(signal.SIGTERM)
    print(server.wait())


if __name__ == "__main__":
    main(sys.argv[1:])
