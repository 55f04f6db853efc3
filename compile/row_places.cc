#include "compile/row_places.h"

#include <algorithm>

#include "compile/loop_group.h"
#include "core/base/error.h"
#include "core/ops/batching.h"
#include "core/ops/norm/batching_layers.h"

namespace lockstep::compiler {

namespace {

/// Whether the argument names the last of `rank` dimensions and no other.
bool is_last_dim(const Value& value, int64_t rank) {
  int64_t dim = 0;
  if (value.tag() == Value::Tag::kInt) {
    dim = value.to_int();
  } else if (value.tag() == Value::Tag::kOwnedIntList || value.tag() == Value::Tag::kIntList) {
    const IntList dims = value.to_int_list();
    if (dims.size() != 1) return false;
    dim = dims[0];
  } else {
    return false;
  }
  return dim == -1 || dim == rank - 1;
}

bool is_along_dims(const Operator& op) {
  return op.batching() == &batching::along_dims || op.batching() == &batching::reduction;
}

bool is_norm(const Operator& op) {
  return op.batching() == &batching::native_layer_norm ||
         op.batching() == &batching::fused_rms_norm || op.batching() == &batching::stream_norm ||
         op.batching() == &batching::stream_sum_norm;
}

/// Whether the only dimension that the node's arguments name is the last.
bool works_along_last(const Node& node, int64_t rank) {
  const std::vector<Argument>& arguments = node.op->schema().arguments;
  int named = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].name.starts_with("dim")) continue;
    if (!is_last_dim(node.arguments[i].constant, rank)) return false;
    ++named;
  }
  return named == 1;
}

bool normalises_rows(const Node& node, int64_t length) {
  const int at = node.op->schema().find("normalized_shape");
  if (at < 0) return false;
  const IntList shape = node.arguments[static_cast<size_t>(at)].constant.to_int_list();
  return shape.size() == 1 && shape[0] == length;
}

}  // namespace

std::optional<Rows> Rows::of(const Dims& sizes) {
  if (sizes.size() < 2) return std::nullopt;
  const int64_t length = sizes.back();
  if (length < 2) return std::nullopt;
  const int64_t count = count_elements(sizes) / length;
  if (count < 2) return std::nullopt;
  return Rows{sizes, count, length};
}

bool works_along_dims(const Node& node) { return is_along_dims(*node.op) || is_norm(*node.op); }

Device device_of(const Graph& graph, const Node& node) {
  std::optional<Device> device;
  each_read(node, [&](ValueId id) { device = device.value_or(type_of(graph, id).device); });
  return device.value_or(kCPU);
}

bool makes_row_kernels(const Graph& graph, const Node& node) {
  const LoopBackend* const backend = loop_backend(device_of(graph, node).type);
  return backend != nullptr && backend->plan_rows != nullptr;
}

ValueType type_of_rows(const ValueType& type, RowPlace place, int64_t count) {
  if (place == RowPlace::kShared) return type;
  ValueType tile = type;
  const size_t at = type.sizes.size() - (place == RowPlace::kReduced ? 1 : 2);
  for (size_t i = 0; i < at; ++i) tile.sizes[i] = 1;
  tile.sizes[at] = count;
  tile.strides = contiguous_strides(tile.sizes);
  return tile;
}

std::optional<Rows> rows_of(const Graph& graph, const Node& node) {
  std::optional<Rows> rows;
  each_read(node, [&](ValueId id) {
    const ValueType& type = type_of(graph, id);
    const std::optional<Rows> of = Rows::of(type.sizes);
    const bool is_larger = of && (!rows || of->count * of->length > rows->count * rows->length);
    if (is_larger && is_contiguous(type.sizes, type.strides)) rows = of;
  });
  return rows;
}

std::optional<RowPlace> RowPlaces::place_of(const ValueType& type) const {
  const LoopBackend* const backend = loop_backend(type.device.type);
  const bool groups_rows =
      backend != nullptr && (backend->has_cache || backend->plan_rows != nullptr);
  if (!groups_rows || !is_contiguous(type.sizes, type.strides)) return std::nullopt;
  if (same(type.sizes, rows_.sizes)) return RowPlace::kRow;
  const int64_t elements = count_elements(type.sizes);
  if (type.sizes.size() <= rows_.sizes.size() &&
      (elements == 1 || (elements == rows_.length && type.sizes.back() == elements))) {
    return RowPlace::kShared;
  }
  if (is_column_of(type.sizes, rows_.sizes)) return RowPlace::kNumber;
  return std::nullopt;
}

std::optional<RowPlace> RowPlaces::find(const Graph& graph, ValueId id) const {
  if (const auto made = made_.find(id); made != made_.end()) return made->second;
  return place_of(type_of(graph, id));
}

bool RowPlaces::reads_rows(const Graph& graph, const Node& node) const {
  const bool is_norm_of_rows = is_norm(*node.op);
  const bool is_pointwise = !is_norm_of_rows && !is_along_dims(*node.op);
  bool has_row = false, fits = true;
  each_read(node, [&](ValueId id) {
    const auto place = find(graph, id);
    has_row = has_row || place == RowPlace::kRow || place == RowPlace::kNumber;
    if (is_pointwise) {
      fits = fits && place && place != RowPlace::kReduced;
    } else if (is_norm_of_rows && place == RowPlace::kShared) {
      fits = fits && type_of(graph, id).sizes.size() == 1;  // a weight or bias
    } else {
      fits = fits && place == RowPlace::kRow;
    }
  });
  if (!has_row || !fits) return false;
  if (is_norm_of_rows) return normalises_rows(node, rows_.length);
  return is_pointwise || works_along_last(node, static_cast<int64_t>(rows_.sizes.size()));
}

bool RowPlaces::add(const Graph& graph, const Node& node) {
  const Operator& op = *node.op;
  const bool is_row_operator = works_along_dims(node) && op.kind() == OpKind::kStructured &&
                               op.form() == OpForm::kFunctional && !op.draws_random_numbers();
  if (node.runs_once || (!is_row_operator && !is_elementwise(node))) return false;
  if (std::ranges::any_of(node.arguments, [](const NodeArgument& argument) {
        return argument.kind == NodeArgument::Kind::kTensors;
      })) {
    return false;
  }
  if (!reads_rows(graph, node)) return false;
  std::vector<std::pair<ValueId, RowPlace>> made;
  for (const ValueId id : node.results) {
    if (id == kAbsent) continue;
    const ValueType& type = type_of(graph, id);
    std::optional<RowPlace> place = place_of(type);
    if (is_row_operator && type.sizes.size() + 1 == rows_.sizes.size() &&
        std::equal(type.sizes.begin(), type.sizes.end(), rows_.sizes.begin()) &&
        is_contiguous(type.sizes, type.strides)) {
      place = RowPlace::kReduced;
    }
    if (!place || place == RowPlace::kShared) return false;
    made.emplace_back(id, *place);
  }
  made_.insert(made.begin(), made.end());
  return true;
}

Rows rows_of_group(const Graph& graph, std::span<const Node> nodes) {
  for (const Node& node : nodes) {
    if (const std::optional<Rows> rows = rows_of(graph, node)) return *rows;
  }
  throw Error("[compile] no node of a group works on rows.");
}

void RowPlaces::remove(const Node& node) {
  for (const ValueId id : node.results) made_.erase(id);
}

}  // namespace lockstep::compiler
