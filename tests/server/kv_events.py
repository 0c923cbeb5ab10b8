"""A subscriber of KV events that prints each batch as a line of JSON. Usage: kv_events.py EVENTS REPLAY. A number on stdin
requests the batches from there on, which are printed between the lines {"replay": NUMBER} and {"replayed": COUNT}."""
import json
import sys

import msgpack
import zmq

context = zmq.Context()
events = context.socket(zmq.SUB)
events.subscribe("kv@")
events.connect(sys.argv[1])


def show(number, payload, topic=None):
    print(json.dumps({"topic": topic, "number": number, "batch": msgpack.unpackb(payload)}), flush=True)


def replay(start):
    socket = context.socket(zmq.DEALER)
    socket.connect(sys.argv[2])
    socket.send_multipart([b"", start.to_bytes(8, "big")])
    count = 0
    while True:
        _, number, payload = socket.recv_multipart()
        if int.from_bytes(number, "big", signed=True) == -1:
            break
        show(int.from_bytes(number, "big"), payload)
        count += 1
    socket.close()
    print(json.dumps({"replayed": count}), flush=True)


poller = zmq.Poller()
poller.register(events, zmq.POLLIN)
poller.register(sys.stdin, zmq.POLLIN)
print(json.dumps({"ready": True}), flush=True)
while True:
    for source, _ in poller.poll():
        if source is events:
            topic, number, payload = events.recv_multipart()
            assert len(number) == 8
            show(int.from_bytes(number, "big"), payload, topic.decode())
        else:
            line = sys.stdin.readline()
            if not line:
                sys.exit(0)
            replay(int(line))
