#pragma once

#include <optional>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "runtime/actor/frame.hpp"

namespace redline::transport {

// Frames that may wait between two threads. Mailboxes are the real limit; this one catches a thread that hangs.
inline constexpr int inproc_frames_max = 65536;

std::string_view view(const zmq::message_t& m);

/// Receives one multipart message; returns false if none waits.
bool receive_parts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts);

/// Sends two parts without waiting, both or none. Returns false if the queue is full or nothing is connected.
bool send_parts(zmq::socket_t& socket, std::string_view first, std::string_view second);

/// nullopt if the bytes are not an envelope of this version.
std::optional<actor::envelope> read_envelope(std::string_view bytes);

}  // namespace redline::transport
