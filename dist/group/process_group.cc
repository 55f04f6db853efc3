#include "dist/group/process_group.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/collectives/operation.h"

namespace lockstep::dist {
namespace {

/// Far more than needed, and keeps the stack of a tree reduction small.
constexpr int64_t kMostLeaves = 4096;
constexpr const char* kTreeAllReduce = "tree_all_reduce";
constexpr const char* kTreeReduceScatter = "tree_reduce_scatter";

std::string expected_memory(const char* op, Device device) {
  return fmt::format("[{}] expected tensors on the cpu or on a device with streams, got one on {}.",
                     op, to_string(device));
}

void check_tensor(const char* op, const Tensor& tensor) {
  LS_CHECK(tensor.defined(), ShapeError, "[{}] a tensor is undefined: expected one with memory.",
           op);
  const Device device = tensor.device();
  const bool is_known = device.type == DeviceType::kCPU || device.type == DeviceType::kMeta ||
                        device_runtime(device.type) != nullptr;
  LS_CHECK(is_known, DeviceError, "{}", expected_memory(op, device));
  LS_CHECK(tensor.is_contiguous(), ShapeError,
           "[{}] expected a dense, row-major tensor, got sizes {} with strides {}. Pass "
           "contiguous(), and copy results back.",
           op, tensor.shape(), to_string(tensor.strides()));
}

/// Checks `output` and `input` of one operation.
void check_pair(const char* op, const Tensor& output, const Tensor& input) {
  check_tensor(op, output);
  check_tensor(op, input);
  LS_CHECK(output.dtype() == input.dtype(), DTypeError,
           "[{}] expected output and input of one dtype, got {} and {}.", op,
           to_string(output.dtype()), to_string(input.dtype()));
  LS_CHECK(output.device() == input.device(), DeviceError,
           "[{}] expected output and input on one device, got {} and {}.", op,
           to_string(output.device()), to_string(input.device()));
}

void check_rank(const char* op, const char* what, int rank, int size) {
  LS_CHECK(rank >= 0 && rank < size, DistError, "[{}] {}: expected a rank of 0 to {}, got {}.", op,
           what, size - 1, rank);
}

Operation operation(OpKind kind, const Tensor& output, const Tensor& input, int64_t count) {
  Operation result;
  result.kind = kind;
  result.dtype = output.dtype();
  result.count = count;
  result.input = input.data();
  result.output = output.data();
  return result;
}

/// Returns the number of elements of each part along the first dimension.
std::vector<int64_t> part_counts(const char* which, const Tensor& tensor, IntList splits,
                                 int size) {
  const auto parts = static_cast<size_t>(size);
  const int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  if (splits.empty()) {
    LS_CHECK(
        tensor.numel() % size == 0 && rows % size == 0, ShapeError,
        "[all_to_all] {}: expected a first dimension that {} ranks share evenly, got sizes {}. "
        "Pass {}_splits for unequal parts.",
        which, size, tensor.shape(), which);
    return std::vector<int64_t>(parts, tensor.numel() / size);
  }
  int64_t sum = 0;
  for (const int64_t split : splits) sum += split;
  LS_CHECK(splits.size() == parts && sum == rows && std::ranges::min(splits) >= 0, ShapeError,
           "[all_to_all] {}_splits: expected {} numbers of rows that add up to {}, got {}.", which,
           size, rows, to_string(splits));
  const int64_t row = rows == 0 ? 0 : tensor.numel() / rows;
  std::vector<int64_t> counts;
  for (const int64_t split : splits) counts.push_back(split * row);
  return counts;
}

template <class T>
std::span<const T> one(const T& value) {
  return {&value, 1};
}

void check_lists(const char* op, std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  LS_CHECK(outputs.size() == inputs.size(), ShapeError,
           "[{}] expected as many outputs as inputs, got {} and {}.", op, outputs.size(),
           inputs.size());
}

}  // namespace

/// Collects the operations of one call.
class ProcessGroup::Call {
 public:
  Call(ProcessGroup& group, const CollectiveOptions& options) : group_(group) {
    launch_.timeout = options.timeout.value_or(group.timeout_);
    LS_CHECK(launch_.timeout.count() >= 1, DistError,
             "[{}] timeout: expected at least 1 ms, got {}.", group.name(),
             launch_.timeout.count());
  }

  void add(Operation operation, const Tensor& output, const Tensor& input) {
    LS_CHECK(launch_.operations.empty() || output.device() == launch_.device, DeviceError,
             "[{}] expected the tensors of one call on one device, got {} and {}.",
             dist::name(operation.kind), to_string(launch_.device), to_string(output.device()));
    LS_CHECK(output.device().type != DeviceType::kMeta || group_.plans(), DeviceError, "{}",
             expected_memory(dist::name(operation.kind), output.device()));
    launch_.device = output.device();
    if (operation.kind != OpKind::kSend) written_.push_back(output);
    launch_.operations.push_back(std::move(operation));
    launch_.tensors.push_back(output);
    if (!input.is_same(output)) launch_.tensors.push_back(input);
  }

  Work start() {
    if (launch_.operations.empty()) return {};
    for (const Tensor& tensor : written_) tensor.storage()->bump_version();
    return group_.start(std::move(launch_));
  }

 private:
  ProcessGroup& group_;
  Launch launch_;
  std::vector<Tensor> written_;
};

ProcessGroup::ProcessGroup(int rank, int size, std::string name)
    : rank_(rank), size_(size), name_(std::move(name)) {}

Work ProcessGroup::all_reduce(std::span<const Tensor> tensors, const Reduction& reduction,
                              const CollectiveOptions& options) {
  Call call(*this, options);
  for (const Tensor& tensor : tensors) {
    check_tensor("all_reduce", tensor);
    check_reduction("all_reduce", tensor.dtype(), reduction);
    Operation each = operation(OpKind::kAllReduce, tensor, tensor, tensor.numel());
    each.reduction = reduction;
    call.add(std::move(each), tensor, tensor);
  }
  return call.start();
}

Work ProcessGroup::reduce_scatter(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                  const Reduction& reduction, const CollectiveOptions& options) {
  check_lists("reduce_scatter", outputs, inputs);
  Call call(*this, options);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    const Tensor& input = inputs[i];
    check_pair("reduce_scatter", output, input);
    check_reduction("reduce_scatter", output.dtype(), reduction);
    LS_CHECK(
        input.numel() == output.numel() * size(), ShapeError,
        "[reduce_scatter] input: expected {} elements, {} times the output's {}, got sizes {}.",
        output.numel() * size(), size(), output.numel(), input.shape());
    Operation each = operation(OpKind::kReduceScatter, output, input, output.numel());
    each.reduction = reduction;
    call.add(std::move(each), output, input);
  }
  return call.start();
}

Work ProcessGroup::all_gather(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                              const CollectiveOptions& options) {
  check_lists("all_gather", outputs, inputs);
  Call call(*this, options);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    const Tensor& input = inputs[i];
    check_pair("all_gather", output, input);
    LS_CHECK(output.numel() == input.numel() * size(), ShapeError,
             "[all_gather] output: expected {} elements, {} times the input's {}, got sizes {}.",
             input.numel() * size(), size(), input.numel(), output.shape());
    call.add(operation(OpKind::kAllGather, output, input, input.numel()), output, input);
  }
  return call.start();
}

Work ProcessGroup::broadcast(std::span<const Tensor> tensors, int root,
                             const CollectiveOptions& options) {
  check_rank("broadcast", "root", root, size());
  Call call(*this, options);
  for (const Tensor& tensor : tensors) {
    check_tensor("broadcast", tensor);
    Operation each = operation(OpKind::kBroadcast, tensor, tensor, tensor.numel());
    each.root = root;
    call.add(std::move(each), tensor, tensor);
  }
  return call.start();
}

Work ProcessGroup::tree_all_reduce(const Tensor& output, const Tensor& sums, const LeafDeal& deal,
                                   const CollectiveOptions& options) {
  return tree_reduction(OpKind::kAllReduce, output, sums, deal, options);
}

Work ProcessGroup::tree_all_reduce(const Tensor& output, const Tensor& sums, int64_t leaves,
                                   const CollectiveOptions& options) {
  return tree_all_reduce(output, sums, even_deal(kTreeAllReduce, leaves), options);
}

Work ProcessGroup::tree_reduce_scatter(const Tensor& output, const Tensor& sums,
                                       const LeafDeal& deal, const CollectiveOptions& options) {
  return tree_reduction(OpKind::kReduceScatter, output, sums, deal, options);
}

Work ProcessGroup::tree_reduce_scatter(const Tensor& output, const Tensor& sums, int64_t leaves,
                                       const CollectiveOptions& options) {
  return tree_reduce_scatter(output, sums, even_deal(kTreeReduceScatter, leaves), options);
}

LeafDeal ProcessGroup::even_deal(const char* op, int64_t leaves) const {
  LS_CHECK(leaves >= size() && leaves <= kMostLeaves, DistError,
           "[{}] leaves: expected {} to {}, at least one for each rank, got {}.", op, size(),
           kMostLeaves, leaves);
  return LeafDeal::even(leaves, size());
}

Work ProcessGroup::tree_reduction(OpKind kind, const Tensor& output, const Tensor& sums,
                                  const LeafDeal& deal, const CollectiveOptions& options) {
  const bool scatters = kind == OpKind::kReduceScatter;
  const char* const op = scatters ? kTreeReduceScatter : kTreeAllReduce;
  LS_CHECK(deal.ranks() == size(), DistError,
           "[{}] deal: expected leaves for each of the {} ranks, got a deal of {} ranks.", op,
           size(), deal.ranks());
  LS_CHECK(deal.leaves() <= kMostLeaves, DistError,
           "[{}] deal: expected at most {} leaves, got {}.", op, kMostLeaves, deal.leaves());
  const size_t rows = subtrees(deal.of(rank())).size();
  LS_CHECK(sums.defined() && sums.dim() >= 1 && static_cast<size_t>(sums.size(0)) == rows,
           ShapeError,
           "[{}] sums: expected {} rows, one for each subtree of this rank's leaves, got sizes {}.",
           op, rows, sums.defined() ? to_string(sums.sizes()) : "of no tensor");
  check_pair(op, output, sums.select(0, 0));
  const int64_t row = output.numel() * (scatters ? size() : 1);
  LS_CHECK(row * static_cast<int64_t>(rows) == sums.numel(), ShapeError,
           "[{}] sums: expected rows of {} elements for an output of {}, got sizes {}.", op, row,
           output.numel(), sums.shape());
  LS_CHECK(size_of(output.dtype()) != 2 || !is_floating(output.dtype()), DTypeError,
           "[{}] sums of {} would be rounded between the leaves of one rank, and not between those "
           "of two: expected float32 or float64. Convert first.",
           op, lockstep::name(output.dtype()));
  check_reduction(op, output.dtype(), {});
  Call call(*this, options);
  Operation each = operation(kind, output, sums, output.numel());
  each.reduction.leaves = static_cast<int32_t>(deal.leaves());
  each.deal = deal;
  each.input_stride = static_cast<uint64_t>(sums.stride(0)) * size_of(sums.dtype());
  call.add(std::move(each), output, sums);
  return call.start();
}

Work ProcessGroup::all_reduce(const Tensor& tensor, const Reduction& reduction,
                              const CollectiveOptions& options) {
  return all_reduce(one(tensor), reduction, options);
}

Work ProcessGroup::reduce_scatter(const Tensor& output, const Tensor& input,
                                  const Reduction& reduction, const CollectiveOptions& options) {
  return reduce_scatter(one(output), one(input), reduction, options);
}

Work ProcessGroup::all_gather(const Tensor& output, const Tensor& input,
                              const CollectiveOptions& options) {
  return all_gather(one(output), one(input), options);
}

Work ProcessGroup::broadcast(const Tensor& tensor, int root, const CollectiveOptions& options) {
  return broadcast(one(tensor), root, options);
}

Work ProcessGroup::reduce(const Tensor& tensor, int root, const Reduction& reduction,
                          const CollectiveOptions& options) {
  check_rank("reduce", "root", root, size());
  check_tensor("reduce", tensor);
  check_reduction("reduce", tensor.dtype(), reduction);
  Call call(*this, options);
  Operation each = operation(OpKind::kReduce, tensor, tensor, tensor.numel());
  each.reduction = reduction;
  each.root = root;
  call.add(std::move(each), tensor, tensor);
  return call.start();
}

Work ProcessGroup::all_to_all(const Tensor& output, const Tensor& input, IntList output_splits,
                              IntList input_splits, const CollectiveOptions& options) {
  check_pair("all_to_all", output, input);
  // On meta, where there is no memory, nothing can be shared.
  LS_CHECK(output.data() == nullptr || output.data() != input.data(), ShapeError,
           "[all_to_all] output and input: expected memory of their own, got the same.");
  Call call(*this, options);
  Operation each = operation(OpKind::kAllToAll, output, input, 0);
  each.send_counts = part_counts("input", input, input_splits, size());
  each.receive_counts = part_counts("output", output, output_splits, size());
  const auto own = static_cast<size_t>(rank());
  LS_CHECK(each.send_counts[own] == each.receive_counts[own], ShapeError,
           "[all_to_all] the part that rank {} keeps: expected as many elements of input as of "
           "output, got {} and {}.",
           rank(), each.send_counts[own], each.receive_counts[own]);
  call.add(std::move(each), output, input);
  return call.start();
}

Work ProcessGroup::barrier(const CollectiveOptions& options) {
  Call call(*this, options);
  const Tensor nothing = empty({0}, DType::kU8);
  call.add(operation(OpKind::kBarrier, nothing, nothing, 0), nothing, nothing);
  return call.start();
}

namespace {

Operation message(const char* op, OpKind kind, const Tensor& tensor, int peer, int tag,
                  const ProcessGroup& group) {
  check_tensor(op, tensor);
  check_rank(op, kind == OpKind::kSend ? "to" : "from", peer, group.size());
  LS_CHECK(peer != group.rank(), DistError, "[{}] expected another rank, got this one, {}.", op,
           peer);
  LS_CHECK(tag >= 0 && tag < (1 << 16), DistError, "[{}] tag: expected 0 to {}, got {}.", op,
           (1 << 16) - 1, tag);
  Operation result = operation(kind, tensor, tensor, tensor.numel());
  result.root = peer;
  result.user_tag = static_cast<uint32_t>(tag);
  return result;
}

}  // namespace

Work ProcessGroup::send(const Tensor& tensor, int to, int tag, const CollectiveOptions& options) {
  Call call(*this, options);
  call.add(message("send", OpKind::kSend, tensor, to, tag, *this), tensor, tensor);
  return call.start();
}

Work ProcessGroup::recv(const Tensor& tensor, int from, int tag, const CollectiveOptions& options) {
  Call call(*this, options);
  call.add(message("recv", OpKind::kReceive, tensor, from, tag, *this), tensor, tensor);
  return call.start();
}

void ProcessGroup::set_timeout(std::chrono::milliseconds timeout) {
  LS_CHECK(timeout.count() >= 1, DistError, "[set_timeout] expected at least 1 ms, got {}.",
           timeout.count());
  timeout_ = timeout;
}

void finish_together(ProcessGroup& group) noexcept {
  try {
    group.barrier().wait();
  } catch (...) {
    // A rank that has passed the barrier has thrown already, so all have finished the comparison.
  }
}

}  // namespace lockstep::dist
