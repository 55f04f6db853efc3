#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/group/process_group.h"

/// The operations that `lockstep bench collectives` measures.
namespace lockstep::launcher {

/// How a reduction combines values, by nccl-tests' name for it.
struct NamedReduction {
  std::string name;  ///< "sum", "prod", "max", "min" or "avg"
  dist::Reduction reduction;
};
std::vector<std::string> reduction_names();
/// One of reduction_names(), for a group of so many ranks.
NamedReduction named_reduction(const std::string& name, int ranks);

/// Tensors of one operation on one rank, and their expected contents afterwards.
struct CollectiveProblem {
  Tensor input;
  Tensor output;  ///< in place: shares memory with `input`
  /// Starts the operation. Out of place it leaves `input` as it was.
  std::function<dist::Work()> start;
  /// Expected value of an element of `output` if `input` was filled with rank + 1.
  std::function<double(int64_t element)> expected;
  bool is_written = true;  ///< whether the operation writes `output` on this rank
};

struct CollectiveKind {
  const char* name;
  bool reduces;
  /// As in nccl-tests: busbw is algbw times this, so that it is comparable with a link's speed.
  double (*bus_factor)(double ranks);
  /// Tensors of `count` elements on the larger side. Nothing if there is no such form: all_to_all
  /// has none in place. Operations that are only in place are made out of place by a copy of the
  /// input before them, which is timed with them.
  std::optional<CollectiveProblem> (*make)(dist::ProcessGroup& group, int64_t count, DType dtype,
                                           const NamedReduction& reduction, bool in_place);
};

/// all_reduce, reduce_scatter, all_gather, all_to_all, broadcast and reduce.
std::vector<std::string> collective_names();
/// One of collective_names().
const CollectiveKind& find_collective(const std::string& name);

}  // namespace lockstep::launcher
