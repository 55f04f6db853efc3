#pragma once

#include <optional>

#include "compile/loop_group.h"

namespace lockstep::compiler {

/// A node that puts rows of a table one behind the other (`embedding`, `index_select` and indexing
/// along the first dimension): a group of element-wise operators reads the table.
struct RowGather {
  ValueId table = kAbsent;
  ValueId indices = kAbsent;
  int64_t rows = 0;    ///< of the table
  int64_t length = 0;  ///< of a row
  bool wraps = false;  ///< negative indices count from the end
};
/// Nothing for other nodes, and for tables and indices that do not lie in memory without gaps.
std::optional<RowGather> row_gather_of(const Graph& graph, const Node& node);

/// A node that draws one truth for each element (`bernoulli`, `native_dropout`): a group draws them
/// where it reads them. Random numbers are those of the operator.
struct MaskDraw {
  double probability = 0;
  ValueId mask = kAbsent;  ///< the drawn truths, if they are a result
  /// What the node computes of the truths and its operand, if it does. kAbsent among the operands
  /// stands for the truths if they are no result.
  std::optional<NodeLoop> loop;
  ValueId result = kAbsent;  ///< of `loop`
};
std::optional<MaskDraw> mask_draw_of(const Graph& graph, const Node& node);

}  // namespace lockstep::compiler
