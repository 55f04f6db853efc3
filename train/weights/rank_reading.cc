#include "train/weights/rank_reading.h"

#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "dist/group/agreement.h"

namespace lockstep::train {

namespace {

/// The files, if this rank sees them. Rank 0 must.
std::optional<TensorRanges> open_here(const dist::ProcessGroup& group,
                                      const std::function<TensorRanges()>& open) {
  if (group.rank() == 0) return open();
  try {
    return open();
  } catch (const CheckpointError&) {
    return std::nullopt;
  }
}

/// Which tensors of the list are in rank 0's files: '1' for each that is.
std::string known_of(dist::ProcessGroup& group, const std::optional<TensorRanges>& files) {
  std::string own;
  for (size_t i = 0; group.rank() == 0 && i < files->size(); ++i) own += files->has(i) ? '1' : '0';
  return dist::all_gather_texts(group, own, dist::at_start(group)).front();
}

/// Rank 0 reads what rank `to` keeps, and sends it.
void send_runs(dist::ProcessGroup& group, const TensorRanges& files,
               const std::vector<KeptRun>& runs, int to, const TensorOptions& options) {
  for (const KeptRun& run : runs) {
    if (!files.has(run.tensor)) continue;
    const Tensor values = empty({run.end - run.first}, options);
    files.read(run.tensor, run.first, run.end, values);
    group.send(values, to).wait();
  }
}

}  // namespace

std::optional<TensorRanges> read_on_ranks(
    dist::ProcessGroup& group, const std::function<TensorRanges()>& open,
    const std::function<std::vector<KeptRun>(int rank)>& runs) {
  std::optional<TensorRanges> files = open_here(group, open);
  const std::vector<std::string> seen = dist::all_gather_texts(
      group, files ? files->identity() : std::string(), dist::at_start(group));
  const bool sees = seen[static_cast<size_t>(group.rank())] == seen.front();
  const std::string known = known_of(group, files);
  const std::vector<KeptRun> own = runs(group.rank());
  for (const KeptRun& run : own) {
    if (sees) {
      files->read(run.tensor, run.first, run.end, run.values);
    } else if (known[run.tensor] == '1') {
      group.recv(run.values, 0).wait();
    }
  }
  if (group.rank() != 0) return std::nullopt;
  for (int rank = 1; rank < group.size(); ++rank) {
    if (seen[static_cast<size_t>(rank)] == seen.front()) continue;
    const std::vector<KeptRun> others = runs(rank);
    if (others.empty()) continue;
    const TensorOptions options =
        own.empty() ? TensorOptions{DType::kF32, kCPU} : own.front().values.options();
    send_runs(group, *files, others, rank, options);
  }
  return files;
}

}  // namespace lockstep::train
