#include "compile/row_group.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "compile/fusion.h"
#include "compile/host_read.h"
#include "compile/interpreter.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep::compiler {

namespace {

/// Elements of a value in a tile: several values of so many lie in a core's second cache, and an
/// operator's call costs little beside computing them.
constexpr int64_t kTileElements = 32 * 1024;
/// Tiles that a tensor is cut into at least, so that threads share them.
constexpr int64_t kLeastTiles = 4;
/// Elements below which a tile of a smaller tensor costs more than it saves.
constexpr int64_t kLeastElements = 1024;

int64_t rows_of_tile(const Rows& rows) {
  const int64_t most = std::max<int64_t>(1, kTileElements / rows.length);
  const int64_t least = std::max<int64_t>(1, kLeastElements / rows.length);
  const int64_t shared = (rows.count + kLeastTiles - 1) / kLeastTiles;
  return std::min(rows.count, std::clamp(shared, least, most));
}

}  // namespace

RowGroup::RowGroup(const Graph& graph, std::span<const Node> nodes,
                   const std::vector<bool>& is_read_later, const RowGroup* alike)
    : places_(rows_of_group(graph, nodes)), tile_rows_(rows_of_tile(places_.rows())) {
  find_operands(graph, nodes, is_read_later);
  whole_ = make_tile(nodes_on(graph, nodes, tile_rows_), alike);
  if (const int64_t rest = places_.rows().count % tile_rows_; rest != 0) {
    rest_ = make_tile(nodes_on(graph, nodes, rest), alike);
  }
}

RowGroup::~RowGroup() = default;

void RowGroup::find_operands(const Graph& graph, std::span<const Node> nodes,
                             const std::vector<bool>& is_read_later) {
  const auto bound = [&](ValueId id) {
    return Bound{id, *places_.find(graph, id), type_of(graph, id)};
  };
  for (const Node& node : nodes) {
    LS_CHECK(places_.add(graph, node), Error, "[compile] {} cannot be part of a fused group here.",
             node.op->name());
    each_read(node, [&](ValueId id) {
      const bool is_known =
          places_.makes(id) || std::ranges::find(operands_, id, &Bound::value) != operands_.end();
      if (!is_known) operands_.push_back(bound(id));
    });
    for (const ValueId id : node.results) {
      if (id != kAbsent && is_read_later[static_cast<size_t>(id)]) results_.push_back(bound(id));
    }
  }
}

RowGroup::Tile RowGroup::make_tile(Graph nodes, const RowGroup* alike) {
  if (alike != nullptr) {
    if (same_graph(alike->whole_.nodes, nodes)) return alike->whole_;
    if (alike->rest_ && same_graph(alike->rest_->nodes, nodes)) return *alike->rest_;
  }
  // A single element-wise operator is a group, too: groups write where a result belongs.
  return {nodes, std::make_shared<Interpreter>(fuse_pointwise(nodes, /*least=*/1))};
}

Graph RowGroup::nodes_on(const Graph& graph, std::span<const Node> nodes, int64_t rows) const {
  return graph_of_nodes(nodes, operands_, results_, [&](ValueId id) {
    return type_of_rows(type_of(graph, id), *places_.find(graph, id), rows);
  });
}

void RowGroup::request_kernels() {
  whole_.graph->request_kernels();
  if (rest_) rest_->graph->request_kernels();
}

std::vector<const GroupKernel*> RowGroup::kernels() const {
  std::vector<const GroupKernel*> all = whole_.graph->kernels();
  if (rest_) std::ranges::copy(rest_->graph->kernels(), std::back_inserter(all));
  return all;
}

Tensor RowGroup::rows_of(const Tensor& tensor, const Bound& bound, int64_t first,
                         int64_t count) const {
  if (bound.place == RowPlace::kShared) return tensor;
  const ValueType type = type_of_rows(bound.type, bound.place, count);
  const int64_t width = bound.place == RowPlace::kRow ? places_.rows().length : 1;
  return as_strided(tensor, type.sizes, type.strides, tensor.storage_offset() + first * width);
}

void RowGroup::run_tile(const std::vector<Tensor>& values, int64_t first) const {
  const int64_t count = std::min(tile_rows_, places_.rows().count - first);
  const auto part = [&](const Bound& bound) {
    return rows_of(values[static_cast<size_t>(bound.value)], bound, first, count);
  };
  std::vector<Tensor> inputs, results;
  inputs.reserve(operands_.size());
  results.reserve(results_.size());
  for (const Bound& operand : operands_) inputs.push_back(part(operand));
  for (const Bound& result : results_) results.push_back(part(result));
  (count == tile_rows_ ? whole_ : *rest_).graph->run_into(std::move(inputs), results);
}

void RowGroup::run(std::vector<Tensor>& values) const {
  for (const Bound& result : results_) {
    Tensor& tensor = values[static_cast<size_t>(result.value)];
    if (!tensor.defined()) tensor = make_tensor(result.type);
  }
  const Rows& rows = places_.rows();
  const int64_t tiles = (rows.count + tile_rows_ - 1) / tile_rows_;
  const int64_t grain = std::max<int64_t>(1, kTileElements / (tile_rows_ * rows.length));
  parallel_for(0, tiles, grain, [&](int64_t begin, int64_t end) {
    const NoGradGuard no_grad;
    for (int64_t i = begin; i < end; ++i) run_tile(values, i * tile_rows_);
  });
}

}  // namespace lockstep::compiler
