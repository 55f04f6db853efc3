#pragma once

namespace lockstep::cuda {

/// Adjacent elements that a thread of a kernel made at run time computes at a time.
inline constexpr int kLoopPack = 4;

}  // namespace lockstep::cuda
