#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "nn/module.h"
#include "train/weights/weight_files.h"

namespace lockstep::train {

/// Whether two tensors of files, of one shape and dtype, hold the same bytes.
using SameBytes = std::function<bool(const WeightEntry& a, const WeightEntry& b)>;

/// Finds the tensor of each of `stored`, a model's stored_parameters(), by the rules of
/// `load_weights` (train/weights.h); the result has their order, with null for
/// the matrices of adapters where the files have no adapters. Throws CheckpointError that names
/// `path` and lists every missing, unexpected, ambiguous or differently shaped tensor.
std::vector<const TensorRecord*> match_weights(const WeightFiles::Entries& entries,
                                               const std::vector<nn::StoredParameter>& stored,
                                               const std::filesystem::path& path,
                                               const SameBytes& same_bytes);

}  // namespace lockstep::train
