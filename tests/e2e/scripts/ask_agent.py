"""A stranger: asks an agent for the credentials of workers 1 to 3 and prints what it gets, one JSON object each.

python ask_agent.py SOCKET WORD...      what it claims to know; '' for a stranger who knows nothing
"""

import array
import json
import os
import socket
import struct
import sys


def varint_field(number, value):
    return bytes([number << 3, value])


def text_field(number, text):
    return bytes([number << 3 | 2, len(text)]) + text.encode() if text else b""


def ask(name, worker, word):
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(60)
        agent.connect("\0" + name)
        hello = varint_field(1, worker) + text_field(2, word)
        agent.sendall(struct.pack("!I", len(hello)) + hello)
        answer, ancillary, _, _ = agent.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4))
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data)
    return {
        "pid": os.getpid(),
        "bytes": len(answer),
        "key": b"PRIVATE KEY" in answer,
        "descriptors": len(descriptors),
        "text": repr(answer),
    }


with open("/proc/net/unix") as file:
    assert any(line.endswith(f"@{sys.argv[1]}\n") for line in file), "it can be found"
for worker in (1, 2, 3):
    for word in sys.argv[2:]:
        print(json.dumps(ask(sys.argv[1], worker, word)), flush=True)
