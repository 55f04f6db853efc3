#include "compile/loop_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "compile/block_filled.h"
#include "compile/native/kernel_builder.h"
#include "core/base/check.h"
#include "core/device/kernel_scope.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"

namespace lockstep::compiler {

namespace {

bool is_contiguous(const ValueType& type) {
  return lockstep::is_contiguous(type.sizes, type.strides);
}

/// Whether the sizes are the last ones of `of`, behind dimensions of size 1.
bool is_row_of(const Dims& sizes, const Dims& of) {
  size_t first = 0;
  while (first < sizes.size() && sizes[first] == 1) ++first;
  const size_t count = sizes.size() - first;
  if (count > of.size()) return false;
  return std::equal(sizes.begin() + first, sizes.end(), of.end() - count);
}

/// How elements of a result read an operand.
struct Reading {
  LoopProgram::Place place = LoopProgram::Place::kArray;
  int64_t period = 0;
  int64_t stride = 0;
};

/// Rows that lie apart, each without gaps: half of a tensor along its last dimension, say. Nothing
/// for other strides, and for rows so short that to find them is the work.
std::optional<Reading> rows_apart(const ValueType& type) {
  size_t dim = type.sizes.size();
  int64_t period = 1;
  while (dim > 0 && (type.sizes[dim - 1] == 1 || type.strides[dim - 1] == period)) {
    period *= type.sizes[--dim];
  }
  constexpr int64_t kShortest = 16;
  if (dim == 0 || period < kShortest) return std::nullopt;
  const int64_t stride = type.strides[dim - 1];
  int64_t next = stride;
  for (; dim > 0; --dim) {
    if (type.sizes[dim - 1] == 1) continue;
    if (type.strides[dim - 1] != next) return std::nullopt;
    next *= type.sizes[dim - 1];
  }
  return Reading{LoopProgram::Place::kRows, period, stride};
}

/// Nothing if it is neither of the ways of a program.
std::optional<Reading> reading_of(const ValueType& operand, const ValueType& result) {
  using Place = LoopProgram::Place;
  if (operand.device != result.device) return std::nullopt;
  const int64_t count = count_elements(operand.sizes);
  if (!is_contiguous(operand)) {
    return same(operand.sizes, result.sizes) ? rows_apart(operand) : std::nullopt;
  }
  if (count == 1) return Reading{.place = Place::kNumber, .period = 1};
  if (same(operand.sizes, result.sizes)) return Reading{.place = Place::kArray, .period = count};
  if (is_row_of(operand.sizes, result.sizes)) return Reading{.place = Place::kRow, .period = count};
  if (is_column_of(operand.sizes, result.sizes)) {
    return Reading{.place = Place::kColumn, .period = result.sizes.back()};
  }
  return std::nullopt;
}

/// A few elements with the dtype of a value, and with one only where it has one.
Tensor few_elements(const ValueType& type) {
  constexpr int64_t kFew = 5;
  const std::optional<DeviceType> kernels_of = loop_backend(type.device.type)->kernels_of;
  const Device device = kernels_of ? Device{*kernels_of, 0} : type.device;
  if (type.sizes.size() == 0) return zeros({}, {type.dtype, device});
  return zeros({count_elements(type.sizes) == 1 ? 1 : kFew}, {type.dtype, device});
}

/// Calls the operator, which names what is out of range.
[[noreturn]] void throw_out_of_range(const Node& node, const std::vector<Tensor>& values) {
  std::vector<Tensor> tensors;
  for (const NodeArgument& argument : node.arguments) {
    for (const ValueId id : argument.values) {
      tensors.push_back(id == kAbsent ? Tensor() : values[static_cast<size_t>(id)]);
    }
  }
  (void)call(*node.op, node.arguments, tensors);
  throw Error(fmt::format("[{}] an index is out of range.", node.op->name()));
}

}  // namespace

bool is_column_of(const Dims& sizes, const Dims& of) {
  return sizes.size() == of.size() && sizes.size() > 1 && sizes.back() == 1 &&
         std::equal(sizes.begin(), sizes.end() - 1, of.begin());
}

bool is_elementwise(const Node& node) {
  const Operator& op = *node.op;
  if (op.kind() != OpKind::kStructured || op.form() != OpForm::kFunctional ||
      op.batching() != &batching::elementwise || op.draws_random_numbers() ||
      node.results.size() != 1 || node.results[0] == kAbsent) {
    return false;
  }
  return std::ranges::none_of(node.arguments, [](const NodeArgument& argument) {
    return argument.kind == NodeArgument::Kind::kTensors ||
           // A copy in another format does not depend on the elements alone.
           argument.constant.tag() == Value::Tag::kMemoryFormat;
  });
}

std::optional<NodeLoop> loop_of(const Graph& graph, const Node& node) {
  if (!is_elementwise(node)) return std::nullopt;
  const ValueType& result = type_of(graph, node.results[0]);
  if (loop_backend(result.device.type) == nullptr || !is_contiguous(result) ||
      count_elements(result.sizes) < 2) {
    return std::nullopt;
  }
  std::vector<Tensor> tensors;
  std::vector<ValueId> ids;
  SmallVector<Value, 8> arguments;
  tensors.reserve(node.arguments.size());
  bool has_array = false;
  for (const NodeArgument& argument : node.arguments) {
    if (argument.kind == NodeArgument::Kind::kConstant) {
      arguments.push_back(argument.constant);
      continue;
    }
    const ValueId id = argument.values[0];
    if (id == kAbsent) {
      arguments.push_back(Value());
      continue;
    }
    const auto reading = reading_of(type_of(graph, id), result);
    if (!reading) return std::nullopt;
    has_array = has_array || reading->place == LoopProgram::Place::kArray ||
                reading->place == LoopProgram::Place::kRows;
    tensors.push_back(few_elements(type_of(graph, id)));
    ids.push_back(id);
    arguments.push_back(Value(tensors.back()));
  }
  if (!has_array) return std::nullopt;
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  std::optional<LoopCapture::Taken> taken;
  Tensor computed;
  try {
    LoopCapture capture;
    Stack stack(std::span<Value>(arguments.data(), arguments.size()));
    node.op->call_boxed(stack);
    computed = stack.results()[0].take_tensor();
    taken = capture.taken();
  } catch (const Error&) {
    return std::nullopt;  // it takes no vectors: matrices are its elements
  }
  if (!taken || taken->result != computed.data() || taken->count != computed.numel() ||
      computed.dtype() != result.dtype) {
    return std::nullopt;
  }
  NodeLoop loop{taken->loop, {}};
  for (const void* const address : taken->operands) {
    const auto found = std::ranges::find(tensors, address,
                                         [](const Tensor& t) -> const void* { return t.data(); });
    if (found == tensors.end()) return std::nullopt;
    loop.operands.push_back(ids[static_cast<size_t>(found - tensors.begin())]);
  }
  return loop;
}

LoopGroup::LoopGroup(const Graph& graph, std::span<const Node> nodes,
                     const std::vector<bool>& is_read_later) {
  for (const Node& node : nodes) {
    const ValueType& result = type_of(graph, node.results[0]);
    count_ = count_elements(result.sizes);
    device_ = result.device;
    backend_ = loop_backend(device_.type);
    names_ += (names_.empty() ? "" : ", ") + node.op->name();
    if (const std::optional<RowGather> gather = row_gather_of(graph, node)) {
      LS_CHECK(!is_read_later[static_cast<size_t>(node.results[0])], Error,
               "[compile] {}: its rows are read outside of the group that gathers them.",
               node.op->name());
      add_gather(graph, node, *gather);
    } else if (const std::optional<MaskDraw> draw = mask_draw_of(graph, node)) {
      add_draw(graph, *draw, is_read_later);
    } else {
      const std::optional<NodeLoop> loop = loop_of(graph, node);
      LS_CHECK(loop, Error, "[compile] {} cannot be part of a fused group here.", node.op->name());
      const ValueId id = node.results[0];
      add_result(graph, id, *loop, is_read_later[static_cast<size_t>(id)]);
    }
  }
  slots_.clear();
  program_.assign_buffers();
}

LoopGroup::LoopGroup(const LoopGroup& alike, const Graph& graph, std::span<const Node> nodes)
    : program_(alike.program_),
      operands_(alike.operands_),
      results_(alike.results_),
      gathers_(alike.gathers_),
      draws_(alike.draws_),
      names_(alike.names_),
      device_(alike.device_),
      backend_(alike.backend_) {
  const auto require = [&](bool fits) {
    LS_CHECK(fits, Error, "[compile] the group of {} cannot run with these sizes.", names_);
  };
  count_ = count_elements(type_of(graph, nodes[0].results[0]).sizes);
  for (const Node& node : nodes) {
    for (const ValueId id : node.results) {
      require(id == kAbsent || count_elements(type_of(graph, id).sizes) == count_);
    }
  }
  for (const Bound& result : results_) result_types_.push_back(type_of(graph, result.value));
  for (const Bound& operand : operands_) {
    if (operand.reader == kAbsent) continue;
    const ValueType& type = type_of(graph, operand.value);
    const ValueType& reader = type_of(graph, operand.reader);
    LoopProgram::Slot& slot = program_.slots[operand.slot];
    const std::optional<Reading> reading = reading_of(type, reader);
    require(reading && reading->place == slot.place);
    slot.period = reading->period;
    slot.stride = reading->stride;
  }
  for (Gather& gather : gathers_) {
    gather.node = *std::ranges::find(nodes, gather.node.results, &Node::results);
    const std::optional<RowGather> rows = row_gather_of(graph, gather.node);
    require(rows.has_value());
    gather.rows = program_.slots[gather.slot].check.count = rows->rows;
    for (LoopProgram::Slot& slot : program_.slots) {
      if (slot.rows == static_cast<int32_t>(gather.slot)) slot.period = rows->length;
    }
  }
  // How long rows are may decide how a kernel reads them.
  const PendingKernel* const made = alike.kernel_.pending();
  if (made != nullptr && made->source().text == source().text) kernel_ = alike.kernel_;
}

int32_t LoopGroup::add_slot(LoopProgram::Slot slot) {
  program_.slots.push_back(slot);
  return static_cast<int32_t>(program_.slots.size()) - 1;
}

int32_t LoopGroup::slot_of(const Graph& graph, ValueId id, ValueId reader) {
  if (const auto made = slots_.find(id); made != slots_.end()) return made->second;
  const ValueType& type = type_of(graph, id);
  const ValueType& result = type_of(graph, reader);
  const Reading reading = *reading_of(type, result);
  // Results have as many elements as each other, but not one shape: to [3, 2, 1] an operand [2, 1]
  // is a row, and to [2, 3] a column.
  for (const Bound& operand : operands_) {
    if (operand.value == id && program_.slots[operand.slot].place == reading.place) {
      return static_cast<int32_t>(operand.slot);
    }
  }
  operands_.push_back({program_.slots.size(), id, reader});
  return add_slot({.place = reading.place,
                   .dtype = type.dtype,
                   .period = reading.period,
                   .stride = reading.stride});
}

void LoopGroup::bind_result(const Graph& graph, ValueId id, int32_t slot, bool is_kept) {
  slots_[id] = slot;
  if (!is_kept) return;
  program_.slots[static_cast<size_t>(slot)].place = LoopProgram::Place::kResult;
  results_.push_back({static_cast<size_t>(slot), id});
  result_types_.push_back(type_of(graph, id));
}

void LoopGroup::add_result(const Graph& graph, ValueId id, const NodeLoop& loop, bool is_kept) {
  const ValueType& result = type_of(graph, id);
  LoopProgram::Step step{.loop = loop.loop, .operands = {}, .result = 0};
  for (const ValueId operand : loop.operands) {
    step.operands.push_back(slot_of(graph, operand, id));
  }
  step.result = add_slot({.place = LoopProgram::Place::kScratch, .dtype = result.dtype});
  bind_result(graph, id, step.result, is_kept);
  program_.steps.push_back(std::move(step));
}

void LoopGroup::add_gather(const Graph& graph, const Node& node, const RowGather& gather) {
  const int32_t numbers = add_slot(
      {.place = LoopProgram::Place::kRowNumbers,
       .dtype = backend_->checks_rows ? type_of(graph, gather.indices).dtype : DType::kI64,
       .check = {.count = gather.rows,
                 .wraps = gather.wraps,
                 .op = std::string_view(node.op->name()).substr(0, node.op->name().find('.'))}});
  gathers_.push_back(
      {static_cast<size_t>(numbers), node, gather.indices, gather.rows, gather.wraps});
  operands_.push_back({program_.slots.size(), gather.table});
  slots_[node.results[0]] = add_slot({.place = LoopProgram::Place::kGathered,
                                      .dtype = type_of(graph, gather.table).dtype,
                                      .period = gather.length,
                                      .rows = numbers});
}

void LoopGroup::add_draw(const Graph& graph, const MaskDraw& draw,
                         const std::vector<bool>& is_read_later) {
  const int32_t drawn = add_slot(
      {.place = LoopProgram::Place::kScratch, .dtype = DType::kBool, .drawn = draw.probability});
  ++draws_;
  const auto is_kept = [&](ValueId id) { return is_read_later[static_cast<size_t>(id)]; };
  if (draw.mask != kAbsent) bind_result(graph, draw.mask, drawn, is_kept(draw.mask));
  if (!draw.loop) return;
  slots_[kAbsent] = drawn;
  add_result(graph, draw.result, *draw.loop, is_kept(draw.result));
}

LoopSource LoopGroup::source() const {
  if (backend_->source == nullptr) return {};
  const KernelScope on_device(device_);
  return backend_->source(program_);
}

void LoopGroup::request_kernel() {
  if (kernel_.pending() != nullptr) return;
  LoopSource made = source();
  if (made.text.empty()) return;
  kernel_.request({.text = std::move(made.text),
                   .flags = std::move(made.flags),
                   .what = "loop of " + names_,
                   .compiler = backend_->compiler});
}

const int64_t* LoopGroup::row_numbers(const Gather& gather, const std::vector<Tensor>& values,
                                      std::vector<int64_t>& own) {
  const Tensor& indices = values[static_cast<size_t>(gather.indices)];
  const std::span<const int64_t> wide =
      indices.dtype() == DType::kI64
          ? std::span(indices.data<int64_t>(), static_cast<size_t>(indices.numel()))
          : std::span<const int64_t>();
  const auto is_in_range = [&](int64_t i) { return i >= 0 && i < gather.rows; };
  if (!wide.empty() && std::ranges::all_of(wide, is_in_range)) return wide.data();
  if (wide.empty()) {
    own.assign(indices.data<int32_t>(), indices.data<int32_t>() + indices.numel());
  } else {
    own.assign(wide.begin(), wide.end());
  }
  for (int64_t& number : own) {
    if (gather.wraps && number < 0) number += gather.rows;
  }
  if (!std::ranges::all_of(own, is_in_range)) throw_out_of_range(gather.node, values);
  return own.data();
}

void LoopGroup::run(std::vector<Tensor>& values) const {
  SmallVector<void*, 16> memory;
  for (size_t i = 0; i < program_.slots.size(); ++i) memory.push_back(nullptr);
  for (const Bound& operand : operands_) {
    memory[operand.slot] = values[static_cast<size_t>(operand.value)].data();
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    Tensor& result = values[static_cast<size_t>(results_[i].value)];
    if (!result.defined()) result = make_tensor(result_types_[i]);
    memory[results_[i].slot] = result.data();
  }
  std::vector<std::vector<int64_t>> numbers(gathers_.size());
  for (size_t i = 0; i < gathers_.size(); ++i) {
    memory[gathers_[i].slot] =
        backend_->checks_rows ? values[static_cast<size_t>(gathers_[i].indices)].data()
                              : const_cast<int64_t*>(row_numbers(gathers_[i], values, numbers[i]));
  }
  SmallVector<RandomKey, 4> draws;
  for (size_t i = 0; i < draws_; ++i) draws.push_back(default_generator().next_call());
  const std::span<void* const> addresses(memory.data(), memory.size());
  const std::span<const RandomKey> keys(draws.data(), draws.size());
  const KernelScope on_device(device_);
  const LoopKernel kernel = kernel_.choose([&](LoopKernel made) {
    return backend_->try_kernel(program_, count_, addresses, keys, made);
  });
  backend_->run(program_, count_, addresses, keys, kernel);
}

}  // namespace lockstep::compiler
