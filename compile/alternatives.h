#pragma once

#include <optional>

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// A node that computes the first result of `node` from its other results, with the same bits and
/// for less; its further results are absent. Nothing where no such operator is known. To be used
/// where the other results are there: a fused operator gives what its derivative reads, too.
std::optional<Node> alternative_of(const Node& node);

}  // namespace lockstep::compiler
