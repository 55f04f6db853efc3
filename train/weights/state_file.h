#pragma once

#include <string>

#include "nn/state_dict.h"

namespace lockstep::train {

// Named tensors as a safetensors file (train/weights/safetensors.h), which PyTorch and others read
// as well: save("net.safetensors", net.state_dict()), then net.load_state_dict(load(...)).

/// Writes the tensors; the file appears atomically. A tensor with several names is stored once
/// under the first, and the others are noted in the file. Throws CheckpointError naming the file.
void save(const std::string& path, const nn::StateDict& tensors);

/// Reads all tensors of a file, those with several names under each of them, into memory of the
/// cpu. Throws CheckpointError for a file that is damaged, and UnreadableError with the system's
/// reason.
nn::StateDict load(const std::string& path);

}  // namespace lockstep::train
