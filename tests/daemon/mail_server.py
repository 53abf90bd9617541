"""A mail server on a socket that takes what it is given."""

import socketserver
import threading

import pytest


class Talk(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as a mail needs."""

    def handle(self):
        self.say("220 here")
        while line := self.rfile.readline():
            word = line.split()[0].upper() if line.split() else b""
            if word in (b"MAIL", b"RCPT"):
                self.server.said.append(line.decode().strip())
            if word == b"RCPT" and b"nobody" in line:
                self.say("550 no such user")
            elif word == b"DATA":
                self.say("354 go on")
                self.server.mails.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                self.say("250 taken")
            elif word == b"QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 fine")

    def say(self, text):
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def mail_server():
    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Talk) as server:
        server.mails, server.said = [], []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
