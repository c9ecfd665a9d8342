# SPDX-License-Identifier: MIT
# metrics.test: a client that asks well and badly.
import http.client, socket, sys
from metrics_parse import parse
port, one, two = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def ask(method, path, body=None):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    link.request(method, path, body)
    answer = link.getresponse()
    return answer, answer.read()
def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=600)
def raw(request):
    link = connect()
    link.sendall(request)
    answer = b""
    while True:
        more = link.recv(65536)
        if not more:
            return answer
        answer += more
answer, body = ask("GET", "/metrics")
assert answer.status == 200 and answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
assert int(answer.getheader("Content-Length")) == len(body)
values, _ = parse(body.decode())
assert sum(name == "cuwarden_up" for name, _ in values) == 2
open("scraped", "wb").write(body)
answer, body = ask("HEAD", "/metrics")
assert answer.status == 200 and int(answer.getheader("Content-Length")) > 1000 and body == b""
assert ask("GET", "/metrics?name=x")[0].status == 200
answer, body = ask("GET", "/-/healthy")
assert (answer.status, body) == (200, b"ok\n")
assert ask("GET", "/")[0].status == 404
assert ask("GET", "/metrics/../etc/passwd")[0].status == 404
answer = raw(b"POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000)
assert answer.startswith(b"HTTP/1.1 405 ") and b"\r\nAllow: GET, HEAD\r\n" in answer
assert raw(b"GET /metrics HTTP/1.0\n\n").startswith(b"HTTP/1.1 200 OK\r\n")
for bad in b"\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics\r\n\r\n", b"GET http HTTP/1.1\r\n\r\n", b"GET /m\0 HTTP/1.1\r\n\r\n", \
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n":
    assert raw(bad).startswith(b"HTTP/1.1 400 "), bad
assert raw(b"GET /metrics HTTP/2.0\r\n\r\n").startswith(b"HTTP/1.1 505 ")
assert raw(b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 20000).startswith(b"HTTP/1.1 431 ")
# Who says nothing, or little at a time, keeps nobody from an answer.
idle = [connect() for _ in range(8)]
slow = connect()
for part in b"G", b"ET", b" /-/healthy HTTP/1", b".1\r", b"\n":
    slow.send(part)
    assert ask("GET", "/-/healthy")[0].status == 200
slow.send(b"\r\n")
assert slow.recv(12) == b"HTTP/1.1 200"
# More of them than there are places: the silent give way, and who began to ask has its time.
late = connect()
late.send(b"GET /metrics HTTP/1.1\r\n")
many = [connect() for _ in range(40)]
assert late.recv(65536).startswith(b"HTTP/1.1 408 ")
assert ask("GET", "/-/healthy")[0].status == 200
for link in idle + many:
    link.close()
assert ask("GET", "/metrics")[0].status == 200
# Who has an answer and stays frees the place for others.
answered = []
for _ in range(40):
    link = connect()
    link.sendall(b"GET /-/healthy HTTP/1.1\r\n\r\n")
    assert link.recv(12) == b"HTTP/1.1 200"
    answered.append(link)
for link in answered:
    link.close()
# The host that a browser was told.
def status_for(host):
    return raw(b"GET /-/healthy HTTP/1.1\r\nX: y\r\nhOST:  " + host + b" \r\n\r\n")[9:12]
for host in b"127.0.0.1", b"127.0.0.1:%d" % port, b"localhost", b"LocalHost:1", b"[::1]:9", b"[::1]", b"192.0.2.1", b"gpu-7.example:80":
    assert status_for(host) == b"200", host
for host in b"evil.example", b"evil.example:%d" % port, b"127.0.0.1.evil.example", b"localhost.evil", b"::1", b"[evil]", b"", b"x" * 300:
    assert status_for(host) == b"403", host
# Two of them.
assert raw(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")[9:12] == b"400"
