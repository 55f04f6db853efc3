#include "tests/dist/group/random_operation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <ostream>

#include "dist/collectives/leaf_deal.h"

namespace lockstep::dist {

namespace {

uint64_t total(const std::vector<int64_t>& counts) {
  return static_cast<uint64_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
}

uint64_t part_bytes(const Operation& operation) {
  return static_cast<uint64_t>(operation.count) * size_of(operation.dtype);
}

bool may_be_in_place(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter ||
         kind == OpKind::kAllGather || kind == OpKind::kBroadcast || kind == OpKind::kReduce;
}

/// Reduction of `count` elements at byte `offset` of every rank's input.
Bytes reduction_of(const Collective& collective, const Operation& operation,
                   const std::vector<Bytes>& inputs, uint64_t offset) {
  std::vector<std::vector<const void*>> sources;
  const HostLayout layout = collective.layout();
  for (int host = 0; host < layout.hosts(); ++host) {
    sources.emplace_back();
    for (const int rank : layout.ranks_of(host)) {
      sources.back().push_back(inputs[static_cast<size_t>(rank)].data() + offset);
    }
  }
  return naive_reduction_over_hosts(operation.dtype, operation.reduction, sources, operation.count);
}

/// Sum of the leaves of tree node `node` (a power of two, of which the last may be missing),
/// computed from the sums that the ranks hold.
Bytes tree_sum(const Collective& collective, const std::vector<Bytes>& inputs, LeafRange node) {
  const Operation operation = collective.operation(0);
  const int64_t leaves = operation.reduction.leaves;
  const LeafRange there{node.first, std::min(node.end, leaves)};
  for (int rank = 0; rank < collective.size; ++rank) {
    uint64_t offset = 0;
    for (const LeafRange& sum : subtrees(operation.deal.of(rank))) {
      if (sum == there) {
        const auto first =
            inputs[static_cast<size_t>(rank)].begin() + static_cast<ptrdiff_t>(offset);
        return {first, first + static_cast<ptrdiff_t>(part_bytes(operation))};
      }
      offset += operation.input_stride;
    }
  }
  const int64_t middle = (node.first + node.end) / 2;
  const Bytes left = tree_sum(collective, inputs, {node.first, middle});
  if (middle >= leaves) return left;
  const Bytes right = tree_sum(collective, inputs, {middle, node.end});
  return naive_reduction(operation.dtype, {}, std::vector<const void*>{left.data(), right.data()},
                         operation.count);
}

Bytes exchanged(const Collective& collective, const std::vector<Bytes>& inputs, int rank) {
  Bytes result;
  for (int from = 0; from < collective.size; ++from) {
    const Operation sender = collective.operation(from);
    const auto& counts = sender.send_counts;
    const uint64_t size = size_of(sender.dtype);
    const uint64_t begin = total({counts.begin(), counts.begin() + rank}) * size;
    const uint64_t bytes = static_cast<uint64_t>(counts[static_cast<size_t>(rank)]) * size;
    const auto first = inputs[static_cast<size_t>(from)].begin() + static_cast<ptrdiff_t>(begin);
    result.insert(result.end(), first, first + static_cast<ptrdiff_t>(bytes));
  }
  return result;
}

}  // namespace

uint64_t input_bytes(const Operation& operation, int rank, int size) {
  switch (operation.kind) {
    case OpKind::kReduceScatter:
      return part_bytes(operation) * static_cast<uint64_t>(size);
    case OpKind::kAllToAll:
      return total(operation.send_counts) * size_of(operation.dtype);
    case OpKind::kBarrier:
    case OpKind::kReceive:
      return 0;
    case OpKind::kAllReduce:
      if (operation.reduction.leaves > 0) {
        return (subtrees(operation.deal.of(rank)).size() - 1) * operation.input_stride +
               part_bytes(operation);
      }
      return part_bytes(operation);
    default:
      return part_bytes(operation);
  }
}

uint64_t output_bytes(const Operation& operation, int size) {
  switch (operation.kind) {
    case OpKind::kAllGather:
      return part_bytes(operation) * static_cast<uint64_t>(size);
    case OpKind::kAllToAll:
      return total(operation.receive_counts) * size_of(operation.dtype);
    case OpKind::kBarrier:
    case OpKind::kSend:
      return 0;
    default:
      return part_bytes(operation);
  }
}

uint64_t own_part(const Operation& operation, int rank) {
  if (operation.reduction.leaves > 0) {  // any of the rank's sums
    const uint64_t sums = subtrees(operation.deal.of(rank)).size();
    return static_cast<uint64_t>(operation.count) % sums * operation.input_stride;
  }
  const bool has_parts =
      operation.kind == OpKind::kReduceScatter || operation.kind == OpKind::kAllGather;
  return has_parts ? static_cast<uint64_t>(rank) * part_bytes(operation) : 0;
}

std::vector<Bytes> expected_outputs(const Collective& collective, const std::vector<Bytes>& inputs,
                                    std::vector<Bytes> outputs) {
  for (int rank = 0; rank < collective.size; ++rank) {
    const Operation operation = collective.operation(rank);
    Bytes& output = outputs[static_cast<size_t>(rank)];
    switch (operation.kind) {
      case OpKind::kAllReduce:
        output = operation.reduction.leaves > 0
                     ? tree_sum(collective, inputs,
                                {0, static_cast<int64_t>(std::bit_ceil(
                                        static_cast<uint64_t>(operation.reduction.leaves)))})
                     : reduction_of(collective, operation, inputs, 0);
        break;
      case OpKind::kReduceScatter:
        output = reduction_of(collective, operation, inputs, own_part(operation, rank));
        break;
      case OpKind::kReduce:
        if (rank == operation.root) output = reduction_of(collective, operation, inputs, 0);
        break;
      case OpKind::kAllGather:
        output.clear();
        for (const Bytes& input : inputs) output.insert(output.end(), input.begin(), input.end());
        break;
      case OpKind::kBroadcast:
      case OpKind::kReceive:
        output = inputs[static_cast<size_t>(operation.root)];
        break;
      case OpKind::kAllToAll:
        output = exchanged(collective, inputs, rank);
        break;
      case OpKind::kBarrier:
      case OpKind::kSend:
        break;
    }
  }
  return outputs;
}

Collective collective(OpKind kind, int size, int64_t count, DType dtype) {
  Collective result{.size = size};
  for (int rank = 0; rank < size; ++rank) {
    Operation operation{.kind = kind, .dtype = dtype, .count = count};
    if (kind == OpKind::kAllToAll) {
      operation.send_counts.assign(static_cast<size_t>(size), count);
      operation.receive_counts = operation.send_counts;
    }
    if (kind == OpKind::kSend) {
      operation.kind = rank == 0 ? OpKind::kSend : OpKind::kReceive;
      operation.root = 1 - rank;
    }
    result.operations.push_back(std::move(operation));
  }
  return result;
}

rc::Gen<Collective> random_collective() {
  // Starts with large sizes: RapidCheck runs only a hundred cases.
  return rc::gen::resize(
      100, rc::gen::exec([] {
        const OpKind kind = *rc::gen::element(
            OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kBroadcast,
            OpKind::kReduce, OpKind::kAllToAll, OpKind::kBarrier, OpKind::kSend);
        const int size = kind == OpKind::kSend ? 2 : *rc::gen::inRange(1, 9);
        const int64_t count =
            *rc::gen::oneOf(rc::gen::inRange<int64_t>(0, 20), rc::gen::inRange<int64_t>(0, 700));
        const DType dtype =
            *rc::gen::element(DType::kF32, DType::kBF16, DType::kF64, DType::kI32, DType::kU8);
        Collective result = collective(kind, size, count, dtype);
        result.cut = {.segment_bytes = *rc::gen::element<size_t>(256, 640, 1024),
                      .window = *rc::gen::inRange(1, 5),
                      .small_bytes = *rc::gen::element<size_t>(0, 64, 1024),
                      .way = *rc::gen::element<std::optional<HostWay>>(
                          std::nullopt, HostWay::kParts, HostWay::kExchange, HostWay::kTree)};
        if (*rc::gen::arbitrary<bool>()) {
          result.hosts = *rc::gen::container<std::vector<int>>(
              static_cast<size_t>(size), rc::gen::inRange(0, *rc::gen::inRange(1, 7)));
          if (*rc::gen::arbitrary<bool>()) std::ranges::sort(result.hosts);
        }
        result.in_place = may_be_in_place(kind) && *rc::gen::arbitrary<bool>();

        const Reduction reduction =
            *rc::gen::element(Reduction{}, Reduction{ReduceOp::kProduct}, Reduction{ReduceOp::kMax},
                              Reduction{ReduceOp::kPremultipliedSum, 0.3});
        const int root = *rc::gen::inRange(0, size);
        const bool is_tree = kind == OpKind::kAllReduce && dtype != DType::kBF16;
        // Even and uneven deals, or none.
        LeafDeal deal;
        if (is_tree && *rc::gen::arbitrary<bool>()) {
          deal = *rc::gen::arbitrary<bool>()
                     ? LeafDeal::even(size + *rc::gen::inRange(0, 11), size)
                     : LeafDeal::of_counts(*rc::gen::container<std::vector<int64_t>>(
                           static_cast<size_t>(size), rc::gen::inRange<int64_t>(1, 8)));
        }
        const auto gap = *rc::gen::inRange<size_t>(0, 100);
        for (Operation& operation : result.operations) {
          if (is_floating(dtype) || reduction.op != ReduceOp::kPremultipliedSum) {
            operation.reduction = reduction;
          }
          if (kind == OpKind::kBroadcast || kind == OpKind::kReduce) operation.root = root;
          if (!deal.is_empty()) {
            operation.deal = deal;
            operation.reduction = {.leaves = static_cast<int32_t>(deal.leaves())};
            operation.input_stride = part_bytes(operation) + gap * size_of(dtype);
          }
        }
        if (kind == OpKind::kAllToAll) {
          for (int from = 0; from < size; ++from) {
            for (int to = 0; to < size; ++to) {
              const int64_t part = *rc::gen::element<int64_t>(0, 1, count / 7, count);
              result.operations[static_cast<size_t>(from)].send_counts[static_cast<size_t>(to)] =
                  part;
              result.operations[static_cast<size_t>(to)].receive_counts[static_cast<size_t>(from)] =
                  part;
            }
          }
        }
        return result;
      }));
}

std::ostream& operator<<(std::ostream& stream, const Collective& collective) {
  const Operation operation = collective.operation(0);
  return stream << to_string(signature_of(operation, 0, 0)) << ", " << collective.size
                << " ranks on hosts " << fmt::format("{}", fmt::join(collective.hosts, " "))
                << ", leaves " << to_string(operation.deal) << ", segments of "
                << collective.cut.segment_bytes << ", window " << collective.cut.window
                << ", small up to " << collective.cut.small_bytes
                << (collective.in_place ? ", in place" : "");
}

}  // namespace lockstep::dist
