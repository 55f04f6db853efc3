#pragma once

#include <filesystem>

#include "train/run/checkpoint_manifest.h"

namespace lockstep::train {

/// Writes the checkpoint in shards at `source` to `destination`, which must not exist, as one rank
/// would have written it: with the same bytes. Holds one tensor at a time. The folder appears
/// whole or not at all. Verifies every byte of the source. Throws CheckpointError for a source that
/// is not whole or not in shards, ConfigError for a destination that exists, and DataError.
void consolidate(const std::filesystem::path& source, const std::filesystem::path& destination);

/// The hashes of the tensors that `consolidate` would write, by file; no sizes, no headers.
FileDigests whole_digests(const std::filesystem::path& source, const ShardIndex& shards);

}  // namespace lockstep::train
