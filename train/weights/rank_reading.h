#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dist/group/process_group.h"
#include "train/weights/tensor_ranges.h"

namespace lockstep::train {

/// A run of elements of one tensor of a list that a rank keeps.
struct KeptRun {
  size_t tensor = 0;  ///< index in the list
  int64_t first = 0;  ///< elements `first` to `end` - 1
  int64_t end = 0;
  Tensor values;  ///< [end - first]; undefined for the runs of another rank
};

/// Fills what each rank keeps from files: every rank reads its own runs, and for ranks that do not
/// see these files, such as those of a host without them, rank 0 reads and sends. `open` opens the
/// files on this rank; `runs(rank)` lists what a rank keeps, the same on all ranks but for values.
/// Rank 0's errors are thrown there. Returns the opened files on rank 0. Collective.
std::optional<TensorRanges> read_on_ranks(
    dist::ProcessGroup& group, const std::function<TensorRanges()>& open,
    const std::function<std::vector<KeptRun>(int rank)>& runs);

}  // namespace lockstep::train
