#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/http_message.hpp"

// HTTP as text: what http_front reads and writes in addition to what Beast parses.

namespace redline::transport {

/// The response to a request that no handler answers.
struct refusal {
  unsigned status;
  std::string_view type, code, message;  // texts that need no JSON escaping; code may be empty
};

namespace refusals {
inline constexpr std::string_view invalid_request = "invalid_request_error";
inline constexpr std::string_view unavailable = "unavailable_error";
inline constexpr refusal malformed{400, invalid_request, "", "The request is not valid HTTP/1.1."};
inline constexpr refusal host_missing{400, invalid_request, "", "An HTTP/1.1 request needs one Host header."};
inline constexpr refusal target_malformed{400, invalid_request, "", "The request's target is not a valid path."};
inline constexpr refusal encoding_unknown{501, "not_supported_error", "",
                                          "The only supported Transfer-Encoding is chunked."};
inline constexpr refusal expectation_unknown{417, invalid_request, "",
                                             "The only supported expectation is 100-continue."};
inline constexpr refusal too_slow{408, "timeout_error", "", "The request did not arrive in time."};
inline constexpr refusal body_too_large{413, invalid_request, "request_too_large", "The request's body is too large"};
inline constexpr refusal headers_too_large{431, invalid_request, "headers_too_large",
                                           "The request's headers are too large"};
inline constexpr refusal version_unknown{505, invalid_request, "", "The server supports HTTP/1.0 and HTTP/1.1 only."};
inline constexpr refusal too_many{503, unavailable, "overloaded", "The server has too many open connections."};
inline constexpr refusal too_much{503, unavailable, "overloaded", "The server has too many requests in transit."};
inline constexpr refusal too_many_of_one{
    429, "rate_limit_error", "too_many_requests",
    "You have reached your share of the requests in progress, and the rest is reserved for other clients: try again "
    "when one of yours is finished."};
inline constexpr refusal too_late{504, "timeout_error", "deadline_exceeded", "The answer did not come in time."};
inline constexpr refusal handler_failed{500, "server_error", "", "The server failed to handle the request."};
inline constexpr std::array all = {malformed, host_missing,    target_malformed,  encoding_unknown, expectation_unknown,
                                   too_slow,  body_too_large,  headers_too_large, version_unknown,  too_many,
                                   too_much,  too_many_of_one, too_late,          handler_failed};
}  // namespace refusals

/// Counts a refusal and logs it with the client's address, at most one line per second for all reasons together.
void note_refusal(const refusal& why, std::string_view peer);

/// How often each of refusals::all happened since the process started. Thread-safe.
using refusal_counts = std::array<std::uint64_t, refusals::all.size()>;
refusal_counts read_refusal_counts();

/// An OpenAI error object. bytes_max: the exceeded limit to name, or 0 if there is none.
std::string to_body(const refusal& why, std::uint64_t bytes_max = 0);

/// The current time, for the Date header.
std::string date_now();

/// Appends one header line. Values may contain client input: a line break in one cannot begin another header. A name
/// that is not a token is left out.
void append_header(std::string& head, std::string_view name, std::string_view value);

/// Whether http_front writes this header itself.
bool is_written_by_front(std::string_view name);

/// Fills path and query from "/path?query", "http://host/path?query" or "*"; returns false for anything else.
bool split_target(std::string_view target, http_request& request);

}  // namespace redline::transport
