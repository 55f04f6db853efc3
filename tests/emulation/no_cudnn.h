#pragma once

namespace lockstep::cuda {

/// Makes `cudnn()` report that there is none: a real cuDNN would look for a real GPU.
void install_no_cudnn();

}  // namespace lockstep::cuda
