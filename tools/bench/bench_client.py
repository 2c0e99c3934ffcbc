"""The contestant's side of referee.py, in Python; native/referee_client.h describes the protocol."""

import socket
import statistics
import time


def time_calls(call, calls, block):
    """Seconds of one call: the median over blocks of `block` calls."""
    seconds = []
    for _ in range((calls + block - 1) // block):
        start = time.perf_counter()
        for _ in range(block):
            call()
        seconds.append((time.perf_counter() - start) / block)
    return statistics.median(seconds)


def serve(path, name, rank, handle):
    """Answers the referee until it goes. handle(operation, type, bytes, calls, block) returns seconds; what it raises before it has communicated, on
    all ranks alike, is sent as the answer "no"."""
    with socket.socket(socket.AF_UNIX) as referee:
        referee.connect(path)
        referee.sendall(f"hello {name} {rank}\n".encode())
        with referee.makefile("r", encoding="ascii") as lines:
            for line in lines:
                operation, element_type, *numbers = line.split()
                try:
                    answer = f"{handle(operation, element_type, *map(int, numbers)):.9g}"
                except (AttributeError, NotImplementedError, RuntimeError, ValueError) as error:
                    answer = "no " + (str(error).splitlines() or [type(error).__name__])[0]
                referee.sendall(answer.encode() + b"\n")
