#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "configs/load.h"

namespace lockstep::config {

/// One bit of what an operator's kernel writes, to be flipped on purpose: inject.flip of a config.
struct BitFlip {
  int64_t step = 1;  ///< from 1, as in metrics.jsonl
  /// From 0, over all ranks. Nothing: behind the micro-batches, where gradients are summed and
  /// weights updated.
  std::optional<int64_t> micro_batch = 0;
  std::string operator_name;  ///< "native_layer_norm", "add_"
  int64_t call = 1;           ///< of the operator's calls in the micro-batch, from 1
  int64_t result = 0;         ///< of the tensors that the call writes
  int64_t element = 0;        ///< of that tensor, in row-major order
  int64_t bit = 0;            ///< of that element, the last one of its mantissa first
  friend bool operator==(const BitFlip&, const BitFlip&) = default;
};

/// Parses "step=13,operator=native_layer_norm,call=3,element=17,bit=0". Throws ConfigError naming
/// the part that is wrong.
BitFlip parse_flip(std::string_view text);
/// What parse_flip reads.
std::string to_text(const BitFlip& flip);

/// The flip that a resolved config asks for.
std::optional<BitFlip> flip_of(const RunConfig& config);

/// Checks inject.flip. Throws SourceError.
void check_flip(const RunConfig& config, const Origins& origins);

}  // namespace lockstep::config
