#pragma once

#include "actors/serving/token_log.hpp"
#include "runtime/draft/book.hpp"

namespace redline::actors {

/// Adds an answer's sources to its book: what the log knows of itself (spans to verify, text that the client has
/// already, words of edit programs, arguments of calls), and the sources that the request's method reads. The log
/// outlives the book.
void add_sources(draft::book& book, const token_log& log);

}  // namespace redline::actors
