#include "tests/dist/group/group_conformance.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "dist/collectives/leaf_deal.h"
#include "dist/collectives/reduction.h"
#include "tests/dist/group/random_tensors.h"

namespace lockstep::dist {
namespace {

constexpr auto kEveryDType =
    std::to_array<DType>({DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32,
                          DType::kI64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64});
/// Sizes around the thresholds between algorithms: empty, fewer than ranks, small, several
/// messages.
constexpr auto kCounts = std::to_array<int64_t>({0, 1, 3, 64, 1000, 4099, 100'003});

/// Element `i` on rank `rank`: a whole number from 1 to 7, so that f32 and f64 hold sums and
/// products of 8 ranks exactly.
int64_t value(int rank, int64_t i) { return (rank + 1) * (i % 13 + 1) % 7 + 1; }

/// `count` whole numbers as a tensor of `dtype`; integers wrap, 0 is false.
template <class F>
Tensor tensor_of(DType dtype, int64_t count, F number) {
  const Tensor whole = empty({count}, DType::kI64);
  auto* const data = whole.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) data[i] = number(i);
  return whole.to(dtype);
}

Tensor values_of(DType dtype, int rank, int64_t count) {
  return tensor_of(dtype, count, [&](int64_t i) { return value(rank, i); });
}

std::string bytes_of(const Tensor& tensor) {
  const Tensor here = tensor.to(kCPU);
  return {static_cast<const char*>(here.data()), here.nbytes()};
}

void expect_same_bits(const Tensor& actual, const Tensor& expected, const std::string& what) {
  EXPECT_EQ(actual.dtype(), expected.dtype()) << what;
  EXPECT_TRUE(bytes_of(actual) == bytes_of(expected)) << what << " differs from what it should be";
}

std::string describe(DType dtype, int64_t count, const std::string& more = "") {
  return fmt::format("{} {} {}", count, to_string(dtype), more);
}

int64_t combined(ReduceOp op, int size, int64_t i) {
  int64_t result = value(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const int64_t next = value(rank, i);
    if (op == ReduceOp::kProduct) {
      result *= next;
    } else if (op == ReduceOp::kMin) {
      result = std::min(result, next);
    } else if (op == ReduceOp::kMax) {
      result = std::max(result, next);
    } else {
      result += next;
    }
  }
  return result;
}

Tensor reduced(DType dtype, ReduceOp op, int size, int64_t count) {
  return tensor_of(dtype, count, [&](int64_t i) { return combined(op, size, i); });
}

bool has_meaning(DType dtype, ReduceOp op) {
  return dtype != DType::kBool || op == ReduceOp::kMin || op == ReduceOp::kMax;
}

constexpr auto kPlainOps =
    std::to_array<ReduceOp>({ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax});

void all_reduce_of_every_dtype_and_operation(ProcessGroup& group) {
  for (const DType dtype : kEveryDType) {
    for (const ReduceOp op : kPlainOps) {
      if (!has_meaning(dtype, op)) continue;
      for (const int64_t count : {int64_t{5}, int64_t{3000}}) {
        const Tensor tensor = values_of(dtype, group.rank(), count);
        group.all_reduce(tensor, {op}).wait();
        expect_same_bits(tensor, reduced(dtype, op, group.size(), count),
                         describe(dtype, count, to_string(Reduction{op})));
      }
    }
  }
}

void all_reduce_of_every_size(ProcessGroup& group) {
  for (const int64_t count : kCounts) {
    const Tensor tensor = values_of(DType::kF32, group.rank(), count);
    group.all_reduce(tensor).wait();
    expect_same_bits(tensor, reduced(DType::kF32, ReduceOp::kSum, group.size(), count),
                     describe(DType::kF32, count));
  }
}

void sums_are_taken_in_the_order_of_ranks(ProcessGroup& group) {
  for (const int64_t count : {int64_t{100}, int64_t{50'001}}) {
    const Tensor tensor = random_tensor(DType::kF32, group.rank(), count);
    group.all_reduce(tensor).wait();
    const Tensor expected = random_tensor(DType::kF32, 0, count);
    for (int rank = 1; rank < group.size(); ++rank) {
      add_to(expected, random_tensor(DType::kF32, rank, count));
    }
    expect_same_bits(tensor, expected, describe(DType::kF32, count));
  }
}

/// A rank's sums of its subtrees, and their sum over all leaves.
struct LeafSums {
  LeafSums(const ProcessGroup& group, const LeafDeal& deal, int64_t count)
      : expected(sum_of_leaves(deal.leaves(), count)) {
    const auto trees = subtrees(deal.of(group.rank()));
    // Rows with gaps between them, as in an arena.
    const Tensor rows = empty({static_cast<int64_t>(trees.size()), count + 5}, DType::kF32);
    sums = slice(rows, 1, 0, count);
    for (size_t row = 0; row < trees.size(); ++row) {
      sum_leaves(trees[row].first, trees[row].end, deal.leaves(), count,
                 select(sums, 0, static_cast<int64_t>(row)));
    }
  }

  Tensor sums;
  Tensor expected;
};

/// Calls check(deal, count) for each number of leaves that the group can share, dealt out evenly
/// and with one leaf for all ranks but one, and some counts.
template <class Check>
void each_tree(const ProcessGroup& group, const Check& check) {
  for (const int64_t leaves : {8, 16, 9}) {
    if (leaves < group.size()) continue;
    std::vector<int64_t> uneven(static_cast<size_t>(group.size()), 1);
    uneven[uneven.size() / 2] += leaves - group.size();
    for (const LeafDeal& deal :
         {LeafDeal::even(leaves, group.size()), LeafDeal::of_counts(uneven)}) {
      for (const int64_t count : {int64_t{0}, int64_t{100}, int64_t{40'001}}) check(deal, count);
    }
  }
}

void sums_over_leaves_are_those_of_one_tree(ProcessGroup& group) {
  each_tree(group, [&](const LeafDeal& deal, int64_t count) {
    const LeafSums of(group, deal, count);
    const Tensor result = select(of.sums, 0, 0);  // in place
    group.tree_all_reduce(result, of.sums, deal).wait();
    expect_same_bits(result.contiguous(), of.expected, describe(DType::kF32, count));
  });
}

void parts_of_sums_over_leaves_are_those_of_one_tree(ProcessGroup& group) {
  each_tree(group, [&](const LeafDeal& deal, int64_t part) {
    const LeafSums of(group, deal, part * group.size());
    const int64_t first = group.rank() * part;
    const Tensor expected = slice(of.expected, 0, first, first + part).contiguous();
    const Tensor result = empty({part}, DType::kF32);
    group.tree_reduce_scatter(result, of.sums, deal).wait();
    expect_same_bits(result, expected, describe(DType::kF32, part));
    const Tensor in_place = slice(select(of.sums, 0, 0), 0, first, first + part);
    group.tree_reduce_scatter(in_place, of.sums, deal).wait();
    expect_same_bits(in_place.contiguous(), expected, describe(DType::kF32, part));
  });
}

void sixteen_bits_are_summed_in_f32_and_rounded_once(ProcessGroup& group) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const int64_t count = 9001;
    const Tensor tensor = random_tensor(dtype, group.rank(), count);
    group.all_reduce(tensor).wait();
    const Tensor sum = random_tensor(dtype, 0, count).to(DType::kF32);
    for (int rank = 1; rank < group.size(); ++rank) {
      add_to(sum, random_tensor(dtype, rank, count).to(DType::kF32));
    }
    expect_same_bits(tensor, sum.to(dtype), to_string(dtype));
  }
}

void premultiplied_sums_multiply_every_value(ProcessGroup& group) {
  const Tensor tensor = values_of(DType::kF64, group.rank(), 77);
  group.all_reduce(tensor, {ReduceOp::kPremultipliedSum, 0.5}).wait();
  for (int64_t i = 0; i < 77; ++i) {
    EXPECT_EQ(tensor.data<double>()[i],
              0.5 * static_cast<double>(combined(ReduceOp::kSum, group.size(), i)));
  }
}

void reduce_scatter_gives_each_rank_its_part(ProcessGroup& group) {
  const int n = group.size();
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI64}) {
    for (const int64_t count : kCounts) {
      const Tensor input = values_of(dtype, group.rank(), count * n);
      const Tensor before = input.clone();
      const Tensor output = empty({count}, dtype);
      group.reduce_scatter(output, input).wait();
      const Tensor expected = tensor_of(dtype, count, [&](int64_t i) {
        return combined(ReduceOp::kSum, n, group.rank() * count + i);
      });
      expect_same_bits(output, expected, describe(dtype, count));
      expect_same_bits(input, before, describe(dtype, count, "input"));
    }
  }
}

Tensor gathered(DType dtype, int size, int64_t count) {
  return tensor_of(dtype, count * size,
                   [&](int64_t i) { return value(static_cast<int>(i / count), i % count); });
}

void all_gather_joins_the_parts(ProcessGroup& group) {
  for (const DType dtype : {DType::kF32, DType::kU8, DType::kF64}) {
    for (const int64_t count : kCounts) {
      const Tensor output = empty({count * group.size()}, dtype);
      group.all_gather(output, values_of(dtype, group.rank(), count)).wait();
      expect_same_bits(output, gathered(dtype, group.size(), count), describe(dtype, count));
    }
  }
}

void all_gather_may_be_in_place(ProcessGroup& group) {
  const int64_t count = 20'000;
  const Tensor output = empty({group.size(), count}, DType::kF32);
  const Tensor own = output.select(0, group.rank());
  own.copy_(values_of(DType::kF32, group.rank(), count));
  group.all_gather(output, own).wait();
  expect_same_bits(output, gathered(DType::kF32, group.size(), count), "in place");
}

void broadcast_from_every_root(ProcessGroup& group) {
  for (int root = 0; root < group.size(); ++root) {
    for (const int64_t count : kCounts) {
      const Tensor tensor = values_of(DType::kI32, group.rank(), count);
      group.broadcast(tensor, root).wait();
      expect_same_bits(tensor, values_of(DType::kI32, root, count), describe(DType::kI32, count));
    }
  }
}

void reduce_changes_the_root_alone(ProcessGroup& group) {
  for (int root = 0; root < group.size(); ++root) {
    for (const int64_t count : kCounts) {
      const Tensor tensor = values_of(DType::kF32, group.rank(), count);
      group.reduce(tensor, root).wait();
      expect_same_bits(tensor,
                       group.rank() == root
                           ? reduced(DType::kF32, ReduceOp::kSum, group.size(), count)
                           : values_of(DType::kF32, group.rank(), count),
                       describe(DType::kF32, count));
    }
  }
}

/// Element `i` of what rank `from` sends to rank `to`.
int64_t letter(int from, int to, int64_t i) { return from * 1'000'000 + to * 100'000 + i % 99'991; }

void all_to_all_exchanges_equal_parts(ProcessGroup& group) {
  for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{17}, int64_t{30'000}}) {
    const Tensor input = empty({group.size() * rows, 2}, DType::kI64);
    for (int to = 0; to < group.size(); ++to) {
      for (int64_t i = 0; i < 2 * rows; ++i) {
        input.data<int64_t>()[to * 2 * rows + i] = letter(group.rank(), to, i);
      }
    }
    const Tensor output = empty({group.size() * rows, 2}, DType::kI64);
    group.all_to_all(output, input).wait();
    const Tensor expected = tensor_of(DType::kI64, group.size() * rows * 2, [&](int64_t i) {
      return letter(static_cast<int>(i / (2 * rows)), group.rank(), i % (2 * rows));
    });
    expect_same_bits(output, expected, describe(DType::kI64, rows));
  }
}

void all_to_all_exchanges_unequal_parts(ProcessGroup& group) {
  // Rank r sends 3 r + q rows to rank q; rank 0 sends none to itself.
  const auto rows = [](int from, int to) -> int64_t { return 3 * from + to; };
  std::vector<int64_t> out;
  std::vector<int64_t> in;
  std::vector<int64_t> sent;
  std::vector<int64_t> expected;
  for (int peer = 0; peer < group.size(); ++peer) {
    in.push_back(rows(group.rank(), peer));
    out.push_back(rows(peer, group.rank()));
    for (int64_t i = 0; i < in.back(); ++i) sent.push_back(letter(group.rank(), peer, i));
    for (int64_t i = 0; i < out.back(); ++i) expected.push_back(letter(peer, group.rank(), i));
  }
  const auto as_tensor = [](const std::vector<int64_t>& numbers) {
    return tensor_of(DType::kI64, static_cast<int64_t>(numbers.size()),
                     [&](int64_t i) { return numbers[static_cast<size_t>(i)]; });
  };
  const Tensor output = empty({static_cast<int64_t>(expected.size())}, DType::kI64);
  group.all_to_all(output, as_tensor(sent), out, in).wait();
  expect_same_bits(output, as_tensor(expected), "unequal parts");
}

void messages_go_round(ProcessGroup& group) {
  if (group.size() == 1) return;
  const int next = (group.rank() + 1) % group.size();
  const int before = (group.rank() + group.size() - 1) % group.size();
  for (const int64_t count : kCounts) {
    const Tensor incoming = empty({count}, DType::kF32);
    const Work sent = group.send(values_of(DType::kF32, group.rank(), count), next);
    group.recv(incoming, before).wait();
    sent.wait();
    expect_same_bits(incoming, values_of(DType::kF32, before, count), describe(DType::kF32, count));
  }
}

void messages_of_one_tag_keep_their_order(ProcessGroup& group) {
  if (group.size() == 1 || group.rank() > 1) return;
  constexpr int kMessages = 20;
  const int other = 1 - group.rank();
  // Sizes that need one message, and many.
  const auto count = [](int i) -> int64_t { return i % 3 == 0 ? 70'000 : i; };
  if (group.rank() == 0) {
    std::vector<Work> sent;
    for (int i = 0; i < kMessages; ++i) {
      sent.push_back(group.send(values_of(DType::kI32, i, count(i)), other, i % 2));
    }
    for (const Work& work : sent) work.wait();
    return;
  }
  // Receives those with tag 1 first.
  for (const int tag : {1, 0}) {
    for (int i = tag; i < kMessages; i += 2) {
      const Tensor incoming = empty({count(i)}, DType::kI32);
      group.recv(incoming, other, tag).wait();
      expect_same_bits(incoming, values_of(DType::kI32, i, count(i)), fmt::format("message {}", i));
    }
  }
}

/// Time of a clock that all processes of a machine share.
int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void barrier_waits_for_all(ProcessGroup& group) {
  for (int round = 0; round < 5; ++round) {
    if (group.rank() == round % group.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const Tensor came = empty({1}, DType::kI64).fill_(now_ns());
    group.barrier().wait();
    const int64_t went = now_ns();
    group.all_reduce(came, {ReduceOp::kMax}).wait();
    EXPECT_GE(went, came.data<int64_t>()[0]);
  }
}

void coalesced_operations_are_one_work(ProcessGroup& group) {
  const int n = group.size();
  std::vector<Tensor> tensors;
  std::vector<Tensor> parts;
  std::vector<Tensor> shards;
  std::vector<Tensor> wholes;
  std::vector<Tensor> copies;
  for (const int64_t count : kCounts) {
    tensors.push_back(values_of(DType::kF32, group.rank(), count));
    parts.push_back(values_of(DType::kF32, group.rank(), count * n));
    shards.push_back(empty({count}, DType::kF32));
    wholes.push_back(empty({count * n}, DType::kF32));
    copies.push_back(values_of(DType::kF32, group.rank(), count));
  }
  const std::vector<Tensor> inputs = [&] {
    std::vector<Tensor> result;
    for (const Tensor& tensor : tensors) result.push_back(tensor.clone());
    return result;
  }();
  group.all_reduce(tensors).wait();
  group.reduce_scatter(shards, parts).wait();
  group.all_gather(wholes, inputs).wait();
  group.broadcast(copies, n - 1).wait();
  for (size_t c = 0; c < kCounts.size(); ++c) {
    const int64_t count = kCounts[c];
    expect_same_bits(tensors[c], reduced(DType::kF32, ReduceOp::kSum, n, count), "all_reduce");
    expect_same_bits(
        shards[c],
        tensor_of(DType::kF32, count,
                  [&](int64_t i) { return combined(ReduceOp::kSum, n, group.rank() * count + i); }),
        "reduce_scatter");
    expect_same_bits(wholes[c], gathered(DType::kF32, n, count), "all_gather");
    expect_same_bits(copies[c], values_of(DType::kF32, n - 1, count), "broadcast");
  }
}

void many_operations_are_under_way_at_once(ProcessGroup& group) {
  constexpr int kOperations = 60;
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < kOperations; ++i) {
    tensors.push_back(values_of(DType::kF32, group.rank(), i % 4 == 0 ? 40'000 : 10 * i));
    works.push_back(group.all_reduce(tensors.back()));
  }
  for (int i = kOperations; i-- > 0;) {
    const Tensor& tensor = tensors[static_cast<size_t>(i)];
    works[static_cast<size_t>(i)].wait();
    expect_same_bits(tensor, reduced(DType::kF32, ReduceOp::kSum, group.size(), tensor.numel()),
                     fmt::format("operation {}", i));
  }
}

void subgroups_have_their_own_ranks(ProcessGroup& group) {
  std::vector<int> reversed;
  std::vector<int> even;
  for (int rank = group.size(); rank-- > 0;) reversed.push_back(rank);
  for (int rank = 0; rank < group.size(); rank += 2) even.push_back(rank);
  const auto backwards = group.subgroup(reversed, "backwards");
  const auto some = group.subgroup(even, "even");
  ASSERT_NE(backwards, nullptr);
  EXPECT_EQ(backwards->rank(), group.size() - 1 - group.rank());
  EXPECT_EQ(backwards->name(), "backwards");
  EXPECT_EQ(some == nullptr, group.rank() % 2 == 1);

  // Starts all three at once; operations of different groups run concurrently.
  const int64_t count = 12'345;
  const Tensor world = values_of(DType::kI64, group.rank(), count);
  const Tensor of_some = values_of(DType::kI64, group.rank(), count);
  const Tensor whole = empty({count * group.size()}, DType::kI64);
  const Work first = group.all_reduce(world);
  const Work second =
      backwards->all_gather(whole, values_of(DType::kI64, backwards->rank(), count));
  if (some != nullptr) {
    some->all_reduce(of_some).wait();
    expect_same_bits(of_some,
                     tensor_of(DType::kI64, count,
                               [&](int64_t i) {
                                 int64_t sum = 0;
                                 for (const int rank : even) sum += value(rank, i);
                                 return sum;
                               }),
                     "even");
  }
  second.wait();
  first.wait();
  expect_same_bits(world, reduced(DType::kI64, ReduceOp::kSum, group.size(), count), "world");
  expect_same_bits(whole, gathered(DType::kI64, group.size(), count), "backwards");
}

void groups_may_be_used_in_opposite_order(ProcessGroup& group) {
  std::vector<int> all;
  for (int rank = 0; rank < group.size(); ++rank) all.push_back(rank);
  const auto other = group.subgroup(all, "other");
  const Tensor a = values_of(DType::kF32, group.rank(), 30'000);
  const Tensor b = values_of(DType::kF32, group.rank(), 20);
  Work first;
  Work second;
  if (group.rank() % 2 == 0) {
    first = group.all_reduce(a);
    second = other->all_reduce(b);
  } else {
    second = other->all_reduce(b);
    first = group.all_reduce(a);
  }
  second.wait();
  first.wait();
  expect_same_bits(a, reduced(DType::kF32, ReduceOp::kSum, group.size(), 30'000), "first group");
  expect_same_bits(b, reduced(DType::kF32, ReduceOp::kSum, group.size(), 20), "second group");
}

/// Runs collectives of random kinds and sizes, with random delays on each rank.
void random_collectives_are_right(ProcessGroup& group) {
  constexpr int kOperations = 200;
  // A new seed each time, the same on all ranks.
  const Tensor seed = empty({1}, DType::kI64).fill_(static_cast<int64_t>(std::random_device()()));
  group.broadcast(seed, 0).wait();
  const auto chosen = static_cast<uint64_t>(seed.data<int64_t>()[0]);
  std::mt19937_64 shared(chosen);
  std::mt19937_64 own(chosen + 1 + static_cast<uint64_t>(group.rank()));
  for (int i = 0; i < kOperations; ++i) {
    const auto count = static_cast<int64_t>(shared() % 8 == 0 ? shared() % 40'000 : shared() % 300);
    const auto root = static_cast<int>(shared() % static_cast<uint64_t>(group.size()));
    const auto kind = shared() % 4;
    if (own() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 200));
    const Tensor tensor = empty({count}, DType::kI64).fill_(group.rank() + 1 + i);
    const int64_t n = group.size();
    int64_t expected = n * (n + 1) / 2 + n * i;
    if (kind == 0) {
      group.all_reduce(tensor).wait();
    } else if (kind == 1) {
      group.broadcast(tensor, root).wait();
      expected = root + 1 + i;
    } else if (kind == 2) {
      group.reduce(tensor, root).wait();
      if (group.rank() != root) expected = group.rank() + 1 + i;
    } else {
      const Tensor input = empty({count * n}, DType::kI64).fill_(group.rank() + 1 + i);
      group.reduce_scatter(tensor, input).wait();
    }
    const auto* data = tensor.data<int64_t>();
    ASSERT_TRUE(std::all_of(data, data + count, [&](int64_t x) { return x == expected; }))
        << "seed " << chosen << ", operation " << i << ", kind " << kind << ", " << count
        << " elements";
  }
}

void operations_on_a_device_follow_its_streams(ProcessGroup& group) {
  const Device host = parse_device("host:0");
  const Stream own = get_stream_from_pool(host);
  const StreamGuard guard(own);
  const Tensor tensor = values_of(DType::kF32, group.rank(), 50'000).to(host);
  // Kernels are queued before and after the operation; the host waits only at the end.
  for (int i = 0; i < 10; ++i) tensor.add_(tensor);
  const Work work = group.all_reduce(tensor);
  work.wait();
  tensor.mul_(empty({1}, {DType::kF32, host}).fill_(2));
  const Tensor expected = tensor_of(DType::kF32, 50'000, [&](int64_t i) {
    return 2048 * combined(ReduceOp::kSum, group.size(), i);
  });
  expect_same_bits(tensor, expected, "host");
  work.synchronize();
}

constexpr auto kCases = std::to_array<GroupCase>({
    {"AllReduceOfEveryDTypeAndOperation", all_reduce_of_every_dtype_and_operation},
    {"AllReduceOfEverySize", all_reduce_of_every_size},
    {"SumsAreTakenInTheOrderOfRanks", sums_are_taken_in_the_order_of_ranks},
    {"SumsOverLeavesAreThoseOfOneTree", sums_over_leaves_are_those_of_one_tree},
    {"PartsOfSumsOverLeavesAreThoseOfOneTree", parts_of_sums_over_leaves_are_those_of_one_tree},
    {"SixteenBitsAreSummedInF32AndRoundedOnce", sixteen_bits_are_summed_in_f32_and_rounded_once},
    {"PremultipliedSumsMultiplyEveryValue", premultiplied_sums_multiply_every_value},
    {"ReduceScatterGivesEachRankItsPart", reduce_scatter_gives_each_rank_its_part},
    {"AllGatherJoinsTheParts", all_gather_joins_the_parts},
    {"AllGatherMayBeInPlace", all_gather_may_be_in_place},
    {"BroadcastFromEveryRoot", broadcast_from_every_root},
    {"ReduceChangesTheRootAlone", reduce_changes_the_root_alone},
    {"AllToAllExchangesEqualParts", all_to_all_exchanges_equal_parts},
    {"AllToAllExchangesUnequalParts", all_to_all_exchanges_unequal_parts},
    {"MessagesGoRound", messages_go_round},
    {"MessagesOfOneTagKeepTheirOrder", messages_of_one_tag_keep_their_order},
    {"BarrierWaitsForAll", barrier_waits_for_all},
    {"CoalescedOperationsAreOneWork", coalesced_operations_are_one_work},
    {"ManyOperationsAreUnderWayAtOnce", many_operations_are_under_way_at_once},
    {"SubgroupsHaveTheirOwnRanks", subgroups_have_their_own_ranks},
    {"GroupsMayBeUsedInOppositeOrder", groups_may_be_used_in_opposite_order},
    {"RandomCollectivesAreRight", random_collectives_are_right},
    {"OperationsOnADeviceFollowItsStreams", operations_on_a_device_follow_its_streams},
});

}  // namespace

std::span<const GroupCase> group_cases() { return kCases; }

}  // namespace lockstep::dist
