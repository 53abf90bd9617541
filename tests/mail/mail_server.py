"""A mail server on a socket that accepts all mails, in clear or by TLS with a certificate made here."""

import base64
import contextlib
import socketserver
import ssl
import subprocess
import threading

import pytest


class Talk(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as a mail needs; where the server has a ``context``, RFC 3207 and 4954 too."""

    def handle(self):
        self.safe = False
        with contextlib.suppress(OSError):  # a client that does not trust us hangs up
            try:
                if self.server.implicit:
                    self.encrypt()
                self.talk()
            finally:
                for each in (self.rfile, self.wfile, self.request):
                    each.close()

    def encrypt(self):
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
        self.safe = True

    def talk(self):
        self.say("220 here")
        while line := self.rfile.readline():
            word = line.split()[0].upper() if line.split() else b""
            if word in (b"MAIL", b"RCPT"):
                self.server.said.append(line.decode().strip())
            if word == b"EHLO" and self.server.context is not None:
                self.say("250-here\r\n250 " + ("AUTH PLAIN" if self.safe else "STARTTLS"))
            elif word == b"STARTTLS":
                self.say("220 go on")
                self.encrypt()
            elif word == b"AUTH":
                _, user, password = base64.b64decode(line.split()[2]).decode().split("\0")
                self.server.told.append((user, password, self.safe))
                self.say("235 welcome" if password == "secret" else "535 who are you?")
            elif word == b"RCPT" and b"nobody" in line:
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


@contextlib.contextmanager
def serving(context=None, implicit=False, talk=Talk):
    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), talk) as server:
        server.mails, server.said, server.told = [], [], []
        server.context, server.implicit = context, implicit
        server.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def mail_server():
    with serving() as server:
        yield server


@pytest.fixture
def tls_server(tmp_path):
    """Return a function that makes servers with TLS as localhost; ``certificate``: the one to trust."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with contextlib.ExitStack() as servers:

        def make(implicit):
            server = servers.enter_context(serving(context, implicit))
            server.certificate = certificate
            return server

        yield make
