#pragma once

#include <cstdint>
#include <vector>

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// How a derivative gets what it reads of the values that its function computes.
struct Recomputation {
  std::vector<ValueId> kept;    ///< from forward until backward
  std::vector<Node> nodes;      ///< of forward, or alternatives: backward calls them
  int64_t bytes = 0;            ///< of the memory of `kept`
  int64_t bytes_of_needed = 0;  ///< of what is needed: what is kept where nothing is called again
};

/// Chooses what to keep of `forward`, so that what backward `needs` takes at most `budget` of its
/// memory, or the least that there is, and costs the least to have: a minimum cut between the
/// function and its derivative through values, at the cost of their bytes, and calls, at the cost
/// of their time, with the price of a byte at which the budget is kept. The time of a call is taken
/// from its operator's bytes and floating-point operations. Results of fused operators may be made
/// by less (compile/alternatives.h).
///
/// What small constants make is called again whatever the budget, because it runs once for all
/// calls. Memory of `lives_on`, inputs that are there whatever is chosen, counts nothing. Calls
/// that draw random numbers are not made again, nor are those on inputs that forward changes.
/// Outputs are kept where backward needs them: the caller may change others.
Recomputation choose_recomputed(const Graph& forward, const std::vector<ValueId>& needs,
                                const std::vector<ValueId>& lives_on, double budget);

/// The nodes of a derivative that calls `again`, each before its first reader. `results` are values
/// that the derivative returns.
std::vector<Node> with_recomputed(const std::vector<Node>& again, std::vector<Node> nodes,
                                  const std::vector<ValueId>& results);

}  // namespace lockstep::compiler
