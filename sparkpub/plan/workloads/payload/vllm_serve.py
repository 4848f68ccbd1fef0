"""Start a server, wait until it is healthy, run a benchmark against it, stop it; the benchmark's exit code is ours.

vllm_serve.py PORT SECONDS -- SERVER ARGV -- BENCHMARK ARGV
"""

import subprocess
import sys
import time
import urllib.error
import urllib.request


def healthy(port: str) -> bool:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/health", timeout=5
        ) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def main() -> int:
    port, limit, separator, *rest = sys.argv[1:]
    assert separator == "--"
    cut = rest.index("--")
    with subprocess.Popen(rest[:cut]) as server:
        try:
            deadline = time.monotonic() + float(limit)
            while not healthy(port):
                if server.poll() is not None:
                    print(
                        f"vllm_serve: the server ended with exit code {server.returncode} before it was healthy"
                    )
                    return 1
                if time.monotonic() > deadline:
                    print(f"vllm_serve: the server was not healthy after {limit} s")
                    return 1
                time.sleep(0.5)
            return subprocess.run(rest[cut + 1 :], check=False).returncode
        finally:
            server.terminate()
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()


if __name__ == "__main__":
    sys.exit(main())
