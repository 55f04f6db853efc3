#include "launcher/bench/collective_problem.h"

#include <algorithm>
#include <array>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep::launcher {

namespace {

using dist::ProcessGroup;
using Problem = CollectiveProblem;

double all_but_one(double n) { return (n - 1) / n; }

/// The reduction of 1, 2, ..., n.
double reduced(const NamedReduction& reduction, int ranks) {
  const double n = ranks;
  if (reduction.name == "max") return n;
  if (reduction.name == "min") return 1;
  if (reduction.name == "avg") return (n + 1) / 2;
  if (reduction.name == "sum") return n * (n + 1) / 2;
  double product = 1;
  for (int each = 2; each <= ranks; ++each) product *= each;
  return product;
}

/// A problem of an operation that replaces a tensor.
template <class Run>
Problem replacing(int64_t count, DType dtype, bool in_place, Run run) {
  const Tensor input = empty({count}, dtype);
  const Tensor output = in_place ? input : empty({count}, dtype);
  return {.input = input,
          .output = output,
          .start =
              [input, output, in_place, run] {
                if (!in_place) output.copy_(input);
                return run(output);
              },
          .expected = {}};
}

std::optional<Problem> make_all_reduce(ProcessGroup& group, int64_t count, DType dtype,
                                       const NamedReduction& by, bool in_place) {
  Problem problem = replacing(count, dtype, in_place, [&group, by](const Tensor& tensor) {
    return group.all_reduce(tensor, by.reduction);
  });
  problem.expected = [value = reduced(by, group.size())](int64_t) { return value; };
  return problem;
}

std::optional<Problem> make_reduce(ProcessGroup& group, int64_t count, DType dtype,
                                   const NamedReduction& by, bool in_place) {
  Problem problem = replacing(count, dtype, in_place, [&group, by](const Tensor& tensor) {
    return group.reduce(tensor, 0, by.reduction);
  });
  problem.expected = [value = reduced(by, group.size())](int64_t) { return value; };
  problem.is_written = group.rank() == 0;
  return problem;
}

std::optional<Problem> make_broadcast(ProcessGroup& group, int64_t count, DType dtype,
                                      const NamedReduction&, bool in_place) {
  Problem problem = replacing(count, dtype, in_place, [&group](const Tensor& tensor) {
    return group.broadcast(tensor, 0);
  });
  problem.expected = [](int64_t) { return 1.0; };
  return problem;
}

std::optional<Problem> make_reduce_scatter(ProcessGroup& group, int64_t count, DType dtype,
                                           const NamedReduction& by, bool in_place) {
  const int64_t part = std::max<int64_t>(count / group.size(), 1);
  const Tensor input = empty({part * group.size()}, dtype);
  const Tensor output = in_place ? input.slice(0, group.rank() * part, (group.rank() + 1) * part)
                                 : empty({part}, dtype);
  return Problem{.input = input,
                 .output = output,
                 .start = [&group, input, output,
                           by] { return group.reduce_scatter(output, input, by.reduction); },
                 .expected = [value = reduced(by, group.size())](int64_t) { return value; }};
}

std::optional<Problem> make_all_gather(ProcessGroup& group, int64_t count, DType dtype,
                                       const NamedReduction&, bool in_place) {
  const int64_t part = std::max<int64_t>(count / group.size(), 1);
  const Tensor output = empty({part * group.size()}, dtype);
  const Tensor input = in_place ? output.slice(0, group.rank() * part, (group.rank() + 1) * part)
                                : empty({part}, dtype);
  return Problem{.input = input,
                 .output = output,
                 .start = [&group, input, output] { return group.all_gather(output, input); },
                 .expected = [part](int64_t i) { return static_cast<double>(i / part + 1); }};
}

std::optional<Problem> make_all_to_all(ProcessGroup& group, int64_t count, DType dtype,
                                       const NamedReduction&, bool in_place) {
  if (in_place) return std::nullopt;
  const int64_t part = std::max<int64_t>(count / group.size(), 1);
  const Tensor input = empty({part * group.size()}, dtype);
  const Tensor output = empty({part * group.size()}, dtype);
  return Problem{.input = input,
                 .output = output,
                 .start = [&group, input, output] { return group.all_to_all(output, input); },
                 .expected = [part](int64_t i) { return static_cast<double>(i / part + 1); }};
}

constexpr auto kKinds = std::to_array<CollectiveKind>({
    {"all_reduce", true, [](double n) { return 2 * (n - 1) / n; }, make_all_reduce},
    {"reduce_scatter", true, all_but_one, make_reduce_scatter},
    {"all_gather", false, all_but_one, make_all_gather},
    {"all_to_all", false, all_but_one, make_all_to_all},
    {"broadcast", false, [](double) { return 1.0; }, make_broadcast},
    {"reduce", true, [](double) { return 1.0; }, make_reduce},
});

}  // namespace

std::vector<std::string> reduction_names() { return {"sum", "prod", "max", "min", "avg"}; }

NamedReduction named_reduction(const std::string& name, int ranks) {
  using dist::ReduceOp;
  if (name == "avg") return {name, dist::sum_of_ranks(ranks, /*average=*/true)};
  const ReduceOp op = name == "prod"  ? ReduceOp::kProduct
                      : name == "max" ? ReduceOp::kMax
                      : name == "min" ? ReduceOp::kMin
                                      : ReduceOp::kSum;
  return {name, {.op = op}};
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const CollectiveKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

const CollectiveKind& find_collective(const std::string& name) {
  return *std::ranges::find(kKinds, name,
                            [](const CollectiveKind& kind) { return std::string(kind.name); });
}

}  // namespace lockstep::launcher
