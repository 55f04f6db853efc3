#include "compile/block_filled.h"

#include "core/dispatch/dispatcher.h"

namespace lockstep::compiler {

namespace {

bool lies_dense(const ValueType& type) { return is_contiguous(type.sizes, type.strides); }

/// The only index of `index.Tensor`, if it is for the first dimension.
ValueId only_index(const NodeArgument& indices) {
  ValueId only = kAbsent;
  for (size_t i = 0; i < indices.values.size(); ++i) {
    if (indices.values[i] == kAbsent) continue;
    if (i != 0) return kAbsent;
    only = indices.values[i];
  }
  return only;
}

/// The table and indices of a node that may be one, without their types.
RowGather named_gather(const Node& node) {
  const std::vector<NodeArgument>& given = node.arguments;
  if (node.op->name() == "embedding") {
    return {.table = given[0].values[0], .indices = given[1].values[0]};
  }
  if (node.op->name() == "index_select" && given[1].constant.to_int() == 0) {
    return {.table = given[0].values[0], .indices = given[2].values[0]};
  }
  if (node.op->name() == "index.Tensor") {
    return {.table = given[0].values[0], .indices = only_index(given[1]), .wraps = true};
  }
  return {};
}

/// A cast of truths, as the loop of one whose operand is no value.
std::optional<NodeLoop> cast_of_truths(const ValueType& to) {
  Graph graph;
  ValueType truths = to;
  truths.dtype = DType::kBool;
  const ValueId mask = graph.add_value(truths);
  const ValueId result = graph.add_value(to);
  const Operator& cast = dispatcher().find("_to_copy");
  std::vector<NodeArgument> arguments = {tensor_argument(mask), constant_argument(Value(to.dtype))};
  for (size_t i = arguments.size(); i < cast.schema().arguments.size(); ++i) {
    const bool is_flag = cast.schema().arguments[i].type.base == BaseType::kBool &&
                         !cast.schema().arguments[i].type.optional;
    arguments.push_back(constant_argument(is_flag ? Value(false) : Value()));
  }
  std::optional<NodeLoop> loop = loop_of(graph, {&cast, std::move(arguments), {result}});
  if (loop) loop->operands = {kAbsent};
  return loop;
}

std::optional<MaskDraw> dropout_of(const Graph& graph, const Node& node) {
  const Value& train = node.arguments[2].constant;
  const double p = train.is_none() || train.to_bool() ? node.arguments[1].constant.to_double() : 0;
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  const Operator& scaled = dispatcher().find("native_dropout_backward");  // the same product
  MaskDraw draw{.probability = 1 - p, .mask = node.results[1], .result = node.results[0]};
  if (draw.mask == kAbsent || draw.result == kAbsent || !lies_dense(type_of(graph, draw.mask))) {
    return std::nullopt;
  }
  draw.loop = loop_of(
      graph, {&scaled,
              {node.arguments[0], tensor_argument(draw.mask), constant_argument(Value(scale))},
              {draw.result}});
  if (!draw.loop) return std::nullopt;
  return draw;
}

std::optional<MaskDraw> bernoulli_of(const Graph& graph, const Node& node) {
  const ValueType& type = type_of(graph, node.results[0]);
  if (!lies_dense(type) || count_elements(type.sizes) < 2) return std::nullopt;
  MaskDraw draw{.probability = node.arguments[1].constant.to_double()};
  if (type.dtype == DType::kBool) {
    draw.mask = node.results[0];
    return draw;
  }
  draw.result = node.results[0];
  draw.loop = cast_of_truths(type);
  if (!draw.loop) return std::nullopt;
  return draw;
}

}  // namespace

std::optional<RowGather> row_gather_of(const Graph& graph, const Node& node) {
  RowGather gather = named_gather(node);
  if (gather.table == kAbsent || gather.indices == kAbsent || node.results[0] == kAbsent) {
    return std::nullopt;
  }
  const ValueType& table = type_of(graph, gather.table);
  const ValueType& indices = type_of(graph, gather.indices);
  const ValueType& result = type_of(graph, node.results[0]);
  const bool has_indices = indices.dtype == DType::kI64 || indices.dtype == DType::kI32;
  const LoopBackend* const backend = loop_backend(result.device.type);
  if (backend == nullptr || !backend->gathers || indices.device != result.device ||
      table.device != result.device || !has_indices || table.sizes.size() == 0 ||
      !lies_dense(table) || !lies_dense(indices) || !lies_dense(result)) {
    return std::nullopt;
  }
  gather.rows = table.sizes[0];
  gather.length = gather.rows == 0 ? 0 : count_elements(table.sizes) / gather.rows;
  const int64_t count = count_elements(result.sizes);
  if (count < 2 || gather.length * count_elements(indices.sizes) != count) return std::nullopt;
  return gather;
}

std::optional<MaskDraw> mask_draw_of(const Graph& graph, const Node& node) {
  if (!node.op->draws_random_numbers() || node.results[0] == kAbsent ||
      loop_backend(type_of(graph, node.results[0]).device.type) == nullptr) {
    return std::nullopt;
  }
  if (node.op->name() == "native_dropout") return dropout_of(graph, node);
  if (node.op->name() == "bernoulli.p") return bernoulli_of(graph, node);
  return std::nullopt;
}

}  // namespace lockstep::compiler
