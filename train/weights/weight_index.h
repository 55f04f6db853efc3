#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep::train {

/// Reads a model.safetensors.index.json: returns the file of every tensor of its "weight_map".
/// Throws CheckpointError, naming `origin` and the tensor, for text that is not JSON of that form,
/// and for files that are not beside the index.
std::map<std::string, std::string> parse_weight_index(std::string_view text,
                                                      std::string_view origin);

}  // namespace lockstep::train
