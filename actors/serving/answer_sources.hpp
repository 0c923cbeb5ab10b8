#pragma once

#include "actors/serving/token_log.hpp"
#include "runtime/draft/book.hpp"

namespace redline::actors {

/// Gives the book of an answer its sources: what the log knows of itself (spans to verify, text that the client has
/// already, words of edit programs, arguments of calls), and those that the request's method reads. The log outlives
/// the book.
void add_sources(draft::book& book, const token_log& log);

}  // namespace redline::actors
