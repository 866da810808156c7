"""A server with a pool of threads: `pool.py PORT THREADS MILLIS`. A request keeps a thread for as long as its work takes."""
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

port, threads, millis = (int(text) for text in sys.argv[1:])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(random.expovariate(1000 / millis))
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, *_):
        pass


class Server(ThreadingMixIn, HTTPServer):
    request_queue_size = 4096
    pool = ThreadPoolExecutor(threads)

    def process_request(self, request, address):
        self.pool.submit(self.process_request_thread, request, address)

    def handle_error(self, *_):
        pass


Server(("127.0.0.1", port), Handler).serve_forever()
