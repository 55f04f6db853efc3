#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "dist/group/process_group.h"
#include "train/run/checkpoint.h"
#include "train/run/state_shards.h"

namespace lockstep::train {

/// Writes and syncs the files of rank `rank` to `folder`; `values(i)` is the tensor of piece number
/// i, of the weights and then of the optimizer's state; empty: their own. Returns their digests.
FileDigests write_shard_files(const std::filesystem::path& folder, const StateShards& shards,
                              int rank, const std::function<Tensor(size_t)>& values = {});
/// Digests as text, and back; `origin` begins messages about a text that is none.
std::string text_of(const FileDigests& digests);
FileDigests digests_of(const std::string& text, const std::string& origin);

/// Writes a checkpoint in shards, all ranks at the same time, below rank 0's `folder`; each rank
/// writes its own files, and for ranks that do not see the folder, such as those of a host without
/// a file system shared with rank 0's, rank 0 does, one piece at a time. The manifest is written
/// once all files are on the disk. Returns the checkpoint's folder, as rank 0 names it.
///
/// `record`, `folder` and `then`, which is called once the checkpoint has its name and may throw as
/// writing does, are rank 0's; `record` may be null elsewhere. Collective over `group`, of
/// which no other thread may use this object meanwhile; null for a single rank. If a rank cannot
/// write, all of them throw its error, rank 0 after it has removed what was written. Reads nothing
/// of the trainer but its task.
std::filesystem::path write_shards(dist::ProcessGroup* group, const std::filesystem::path& folder,
                                   const CheckpointRecord* record, const StateShards& shards,
                                   const std::function<void()>& then = {});

}  // namespace lockstep::train
