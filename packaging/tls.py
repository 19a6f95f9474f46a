#!/usr/bin/env python3
"""Takes TLS connections on a free port of localhost and passes them on: packaging/tls.py PORT FOLDER. FOLDER gets
cert.pem and key.pem of a certificate of its own; the port is printed."""

import asyncio
import ssl
import subprocess
import sys


async def pass_on(reader, writer):
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass  # One end is gone: the other is told by the end of the stream.
    finally:
        writer.close()


async def main(port, folder):
    cert, key = f"{folder}/cert.pem", f"{folder}/key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    request += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", cert]
    subprocess.run(request, check=True, stderr=subprocess.DEVNULL)

    async def serve(reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
