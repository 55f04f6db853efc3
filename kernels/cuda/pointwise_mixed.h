#pragma once

namespace lockstep::cuda {

/// Elements in a pack of the kernels for operands of several dtypes, and packs of a thread.
inline constexpr int kMixedPack = 4;
inline constexpr int kMixedPacks = 4;

}  // namespace lockstep::cuda
