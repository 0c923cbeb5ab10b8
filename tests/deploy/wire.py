"""A slow and lossy link between two network namespaces, for kernels without netem: carries frames between a tap device
here and one in another namespace. Usage: wire.py DEVICE NAMESPACE ITS_DEVICE DELAY_MS LOSS_PERCENT SEED"""
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


device, namespace, other_device = sys.argv[1:4]
delay, loss = float(sys.argv[4]) / 1000, float(sys.argv[5]) / 100
chance = random.Random(int(sys.argv[6]))
here = tap(device)
with open(f"/run/netns/{namespace}") as ns:
    if ctypes.CDLL(None, use_errno=True).setns(ns.fileno(), 0) != 0:
        sys.exit(f"cannot enter {namespace}: {os.strerror(ctypes.get_errno())}")
there = tap(other_device)
print("ready", flush=True)

under_way = []  # (due time, number, destination, frame)
count = 0
while True:
    wait = max(0, under_way[0][0] - time.monotonic()) if under_way else None
    for fd in select.select([here, there], [], [], wait)[0]:
        try:
            while True:
                frame = os.read(fd, 65536)
                count += 1
                if chance.random() >= loss:
                    heapq.heappush(under_way, (time.monotonic() + delay, count, there if fd == here else here, frame))
        except BlockingIOError:
            pass
        except OSError:
            time.sleep(0.01)  # the device is down
    while under_way and under_way[0][0] <= time.monotonic():
        _, _, to, frame = heapq.heappop(under_way)
        try:
            os.write(to, frame)
        except OSError:
            pass  # the device is down, or full
