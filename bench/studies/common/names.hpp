#pragma once

namespace redline::actors::cli {}

/// Studies drive the product from outside, so they use its names freely.
namespace redline::studies {
using namespace redline::actors;
using namespace redline::actors::cli;
}  // namespace redline::studies
