"""A broker that gives the first process's number to another one: it notifies the first process, and accepts the next.
Prints the identity of each hello in hexadecimal. Usage: twin_broker.py ENDPOINT"""
import sys

import msgpack
import zmq

HELLO, TAKEN = 0, 6
broker = zmq.Context().socket(zmq.ROUTER)
broker.bind(sys.argv[1])
print("ready", flush=True)
first = None
seen = set()
while True:
    identity, head, card = broker.recv_multipart()
    version, to, sender, message, subject, life, to_life, *_ = msgpack.unpackb(head)
    if message != HELLO:
        continue
    if identity not in seen:
        seen.add(identity)
        print(identity.hex(), flush=True)
    first = first or identity
    number = int.from_bytes(identity[1:4], "big")
    twin = identity == first
    answer = msgpack.packb([version, 0, 0, TAKEN if twin else HELLO, 0, 4242, 0])
    broker.send_multipart([identity, answer, msgpack.packb([number, 1] if twin else [msgpack.unpackb(card)[-1]])])
