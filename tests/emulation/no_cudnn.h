#pragma once

namespace lockstep::cuda {

/// From now on `cudnn()` is none: one on this machine would look for a GPU of its own.
void install_no_cudnn();

}  // namespace lockstep::cuda
